// kiln as a C++ program uses it: one session, and the code of a unit by its source. The program is linked to the shared
// library and to nothing else of kiln's.
#include <optional>
#include <string>

#include <kiln/kiln.hpp>

#include "bench/peers/adapters/adapter.hpp"

namespace {

using kiln::peers::Answer;
using kiln::peers::Question;

class Kiln {
 public:
  std::string get(const Question& asked) {
    if (!session_) {
      kiln::SessionOptions options;
      options.settings["cache.dir"] = asked.cache;
      if (asked.limit) options.settings["cache.max_size"] = std::to_string(*asked.limit);
      auto opened = kiln::Session::open(options);
      if (!opened) return opened.error().message;
      session_ = *opened;
    }
    const kiln::Unit unit = kiln::Unit::cuda(asked.name, asked.source).include_root(asked.include);
    const auto artifact = session_->artifact(unit, kiln::Target{asked.arch, kiln::Form::Cubin});
    if (!artifact) return artifact.error().message;
    code_ = artifact->bytes;
    return {};
  }

  void finish(Answer& answer) const {
    answer.code = code_.view();
    if (session_) answer.compiles = session_->status().compiled;
  }

 private:
  std::optional<kiln::Session> session_;
  kiln::Bytes code_;
};

}  // namespace

int main(int argc, char** argv) {
  if (kiln::peers::wants_version(argc, argv)) {
    std::printf("%s\n", kiln::version());
    return 0;
  }
  return kiln::peers::ask(argc, argv, Kiln{});
}
