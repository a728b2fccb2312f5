// SPDX-License-Identifier: Apache-2.0
#include "conformance/compiler_conformance.hpp"

#include "backends/opencl/opencl_compiler.hpp"
#include "conformance/in_worker.hpp"

namespace kiln::test {
namespace {

struct OpenClFixture {
  // PoCL writes the names of temporary files into its binaries.
  static constexpr bool reproducible = false;

  std::unique_ptr<Compiler> compiler() { return std::make_unique<OpenClCompiler>(); }
  Unit unit() {
    return Unit::opencl("saxpy.cl", repository_text("examples/kernels/saxpy.cl"))
        .with_entry("saxpy")
        .with_entry("scale");
  }
  Unit broken() { return Unit::opencl("broken.cl", "__kernel void broken(__global float* x) { x[0] = nothing; }"); }
  Target target() { return OpenClCompiler().device().value().target; }
  Target unsupported() { return Target::opencl("pocl:a device of nowhere"); }
  std::string possible() { return target().architecture; }
};

INSTANTIATE_TYPED_TEST_SUITE_P(OpenCl, CompilerConformance, OpenClFixture);
INSTANTIATE_TYPED_TEST_SUITE_P(OpenClInWorker, CompilerConformance, InWorker<OpenClFixture>);

}  // namespace
}  // namespace kiln::test
