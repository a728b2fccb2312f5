// kiln as a C++ program uses it for NVIDIA's algorithms: one session, and one founding spec, whose name SOURCE holds.
// The program is linked to the shared library and to nothing else of kiln's.
#include <optional>
#include <string>

#include <kiln/cccl.hpp>
#include <kiln/kiln.hpp>

#include "bench/peers/adapters/adapter.hpp"
#include "bench/peers/adapters/spec.hpp"

namespace {

using kiln::peers::Answer;
using kiln::peers::Question;

class Program {
 public:
  std::string get(const Question& asked) {
    const kiln::Status there = find(asked);
    return there ? std::string() : there.error().message;
  }

  void finish(Answer& answer) {
    answer.code.assign(reinterpret_cast<const char*>(code_.data()), code_.size());
    if (session_) answer.compiles = session_->status().compiled;
  }

 private:
  kiln::Status find(const Question& asked) {
    if (!session_) {
      kiln::SessionOptions options;
      options.settings["cache.dir"] = asked.cache;
      if (asked.limit) options.settings["cache.max_size"] = std::to_string(*asked.limit);
      auto opened = kiln::Session::open(options);
      if (!opened) return opened.error();
      session_ = *opened;
    }
    const auto spec = kiln::cccl::named(kiln::peers::spec_name(asked));
    if (!spec) return spec.error();
    const auto target = kiln::Target::parse(asked.arch);
    if (!target) return target.error();
    auto artifact = session_->artifact(*spec, *target);
    if (!artifact) return artifact.error();
    code_ = artifact->bytes;
    return {};
  }

  std::optional<kiln::Session> session_;
  kiln::Bytes code_;
};

}  // namespace

int main(int argc, char** argv) {
  if (kiln::peers::wants_version(argc, argv)) {
    std::printf("%s\n", kiln::version());
    return 0;
  }
  return kiln::peers::ask(argc, argv, Program());
}
