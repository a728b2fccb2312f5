// SPDX-License-Identifier: Apache-2.0
// kiln as a C++ program uses it for NVIDIA's algorithms: one session, and one predefined spec, whose name SOURCE holds.
#include <kiln/cccl.hpp>

#include "bench/peers/adapters/kiln_session.hpp"
#include "bench/peers/adapters/spec.hpp"

namespace {

using namespace kiln::peers;

class Program : public KilnSession {
 public:
  std::string get(const Question& asked) {
    const kiln::Status there = find(asked);
    return there ? std::string() : there.error().message;
  }

 private:
  kiln::Status find(const Question& asked) {
    if (kiln::Status opened = open(asked); !opened) return opened;
    const auto spec = kiln::cccl::find_predefined(spec_name(asked));
    if (!spec) return spec.error();
    const auto target = kiln::Target::parse(asked.arch);
    if (!target) return target.error();
    auto artifact = session_->artifact(*spec, *target);
    if (!artifact) return artifact.error();
    code_ = artifact->bytes;
    return {};
  }
};

}  // namespace

int main(int argc, char** argv) { return ask_kiln(argc, argv, Program()); }
