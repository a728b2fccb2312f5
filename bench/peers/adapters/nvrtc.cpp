// NVRTC and nothing else, the library that kiln would choose: what everybody pays at least who has no code yet. The
// cache of its own that NVRTC has since 12.9 is the driver's: where there is no driver it keeps nothing, and it is off
// here.
#include <memory>
#include <string>

#include "bench/bare_nvrtc.hpp"
#include "bench/peers/adapters/adapter.hpp"

namespace {

using kiln::peers::Answer;
using kiln::peers::Question;

std::optional<kiln::NvrtcCandidate> find() { return kiln::choose_nvrtc(kiln::NvrtcSearch::of_this_process({})); }

class Nvrtc {
 public:
  std::string get(const Question& asked) {
    if (!library_) {
      const auto found = find();
      if (!found) return "there is no NVRTC";
      auto library = kiln::NvrtcLibrary::open(found->path);
      if (!library) return library.error().message;
      library_ = *library;
    }
    const kiln::Unit unit = kiln::Unit::cuda(asked.name, asked.source).include_root(asked.include);
    ++compiles_;
    auto code = kiln::bench::compile_with_bare_nvrtc(*library_, unit, asked.arch);
    if (!code) return code.error().message;
    code_ = std::move(*code);
    return {};
  }

  void finish(Answer& answer) const {
    answer.code = code_;
    answer.compiles = compiles_;
  }

 private:
  std::shared_ptr<const kiln::NvrtcLibrary> library_;
  std::string code_;
  std::size_t compiles_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (!kiln::peers::wants_version(argc, argv)) return kiln::peers::ask(argc, argv, Nvrtc{});
  const auto found = find();
  if (!found) {
    std::fprintf(stderr, "there is no NVRTC\n");
    return kiln::peers::kNotHere;
  }
  std::printf("%s\n", found->version.text().c_str());
  return 0;
}
