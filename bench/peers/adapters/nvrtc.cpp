// SPDX-License-Identifier: Apache-2.0
// NVRTC alone, with the library that kiln would use: the minimum cost without any cached code. NVRTC's own cache (since
// 12.9) belongs to the driver; without a driver it stores nothing, and it is off here.
#include <memory>
#include <string>

#include "bench/peers/adapters/adapter.hpp"
#include "bench/support/bare_nvrtc.hpp"

namespace {

using kiln::peers::Answer;
using kiln::peers::Question;

std::optional<kiln::NvrtcCandidate> find() { return kiln::choose_nvrtc(kiln::NvrtcSearch::of_this_process({})); }

class Nvrtc {
 public:
  std::string get(const Question& asked) {
    if (!library_) {
      const auto found = find();
      if (!found) return "NVRTC was not found";
      auto library = kiln::NvrtcLibrary::open(found->path);
      if (!library) return library.error().message;
      library_ = *library;
    }
    const kiln::Unit unit = kiln::Unit::cuda(asked.name, asked.source).with_include_root(asked.include);
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
    std::fprintf(stderr, "NVRTC was not found\n");
    return kiln::peers::kNotHere;
  }
  std::printf("%s\n", found->version.text().c_str());
  return 0;
}
