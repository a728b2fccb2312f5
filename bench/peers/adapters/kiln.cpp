// SPDX-License-Identifier: Apache-2.0
// kiln as a C++ program uses it: one session, and the code of a unit from its source.
#include "bench/peers/adapters/kiln_session.hpp"

namespace {

using namespace kiln::peers;

class Program : public KilnSession {
 public:
  std::string get(const Question& asked) {
    if (const kiln::Status opened = open(asked); !opened) return opened.error().message;
    const kiln::Unit unit = kiln::Unit::cuda(asked.name, asked.source).with_include_root(asked.include);
    const auto artifact = session_->artifact(unit, kiln::Target{asked.arch, kiln::Form::Cubin});
    if (!artifact) return artifact.error().message;
    code_ = artifact->bytes;
    return {};
  }
};

}  // namespace

int main(int argc, char** argv) { return ask_kiln(argc, argv, Program()); }
