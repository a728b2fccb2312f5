// kiln as a C++ program uses it that wants a kernel rather than bytes, for peers that give no bytes either: the code is
// loaded by the tests' driver double (loaded.hpp). Asked again it is asked by unit and name; no handle is kept.
#include <optional>
#include <string>

#include <kiln/kiln.hpp>

#include "bench/peers/adapters/adapter.hpp"
#include "bench/peers/adapters/loaded.hpp"

namespace {

using kiln::peers::Answer;
using kiln::peers::Question;

class Program {
 public:
  std::string get(const Question& asked) {
    if (!session_) {
      kiln::SessionOptions options;
      options.settings["cache.dir"] = asked.cache;
      if (asked.limit) options.settings["cache.max_size"] = std::to_string(*asked.limit);
      auto opened = kiln::Session::open(options);
      if (!opened) return opened.error().message;
      session_ = *opened;
      entry_ = kiln::peers::first_kernel(asked.source);
      unit_ = kiln::Unit::cuda(asked.name, asked.source).include_root(asked.include).entry(entry_);
      target_ = {asked.arch, kiln::Form::Cubin};
    }
    const auto kernel = session_->get(*unit_, entry_);
    return kernel ? std::string() : kernel.error().message;
  }

  void finish(Answer& answer) {
    if (!session_ || !answer.error.empty()) return;
    const auto artifact = session_->artifact(*unit_, target_);  // what was loaded is in memory
    if (artifact) answer.code.assign(reinterpret_cast<const char*>(artifact->bytes.data()), artifact->bytes.size());
    answer.compiles = session_->status().compiled;
  }

 private:
  std::optional<kiln::Session> session_;
  std::optional<kiln::Unit> unit_;
  std::string entry_;
  kiln::Target target_;
};

}  // namespace

int main(int argc, char** argv) {
  if (kiln::peers::wants_version(argc, argv)) {
    std::printf("%s\n", kiln::version());
    return 0;
  }
  if (argc < 5 || !kiln::peers::make_context(argv[4])) return 2;
  return kiln::peers::ask(argc, argv, Program());
}
