// SPDX-License-Identifier: Apache-2.0
// kiln as a C++ program uses it that needs a kernel instead of bytes, for peers that do not return bytes either: the
// fake driver of the tests loads the code (loaded.hpp). Later requests are by unit and name, without a handle.
#include "bench/peers/adapters/kiln_session.hpp"
#include "bench/peers/adapters/loaded.hpp"

namespace {

using namespace kiln::peers;

class Program : public KilnSession {
 public:
  std::string get(const Question& asked) {
    if (const kiln::Status opened = open(asked); !opened) return opened.error().message;
    if (!unit_) {
      entry_ = first_kernel(asked.source);
      unit_ = kiln::Unit::cuda(asked.name, asked.source).with_include_root(asked.include).with_entry(entry_);
      target_ = {asked.arch, kiln::Form::Cubin};
    }
    const auto kernel = session_->get(*unit_, entry_);
    return kernel ? std::string() : kernel.error().message;
  }

  void finish(Answer& answer) {
    if (!unit_ || !answer.error.empty()) return;
    const auto artifact = session_->artifact(*unit_, target_);  // the loaded artifact is in memory
    if (artifact) code_ = artifact->bytes;
    KilnSession::finish(answer);
  }

 private:
  std::optional<kiln::Unit> unit_;
  std::string entry_;
  kiln::Target target_;
};

}  // namespace

int main(int argc, char** argv) {
  if (!wants_version(argc, argv) && (argc < 5 || !make_context(argv[4]))) return 2;
  return ask_kiln(argc, argv, Program());
}
