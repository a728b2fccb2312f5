// SPDX-License-Identifier: Apache-2.0
#include "conformance/compiler_conformance.hpp"

#include "backends/command/command_compiler.hpp"
#include "conformance/in_worker.hpp"

namespace kiln::test {
namespace {

// Shared by the cases of one process: nvcc and the programs that it calls are 230 MB to digest.
FileDigestCache& digests() {
  static FileDigestCache shared{""};
  return shared;
}

struct NvccFixture {
  static constexpr bool reproducible = true;

  std::unique_ptr<Compiler> compiler() { return std::make_unique<CommandCompiler>("nvcc", digests()); }
  Unit unit() {
    return Unit::command("saxpy.cu",
                         repository_text("examples/kernels/saxpy.cu") +
                             "template __global__ void scale<float>(unsigned, float, float*);\n",
                         nvcc_template())
        .with_entry("saxpy")
        .with_entry("_Z5scaleIfEvjT_PS0_");
  }
  Unit broken() {
    return Unit::command("broken.cu", "extern \"C\" __global__ void broken(float* x) { x[0] = nothing; }",
                         nvcc_template());
  }
  Target target() { return Target::sm(80); }
  Target unsupported() { return Target::sm(20); }
  std::string possible() { return "sm_80"; }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Nvcc, CompilerConformance, NvccFixture);
INSTANTIATE_TYPED_TEST_SUITE_P(NvccInWorker, CompilerConformance, InWorker<NvccFixture>);

}  // namespace
}  // namespace kiln::test
