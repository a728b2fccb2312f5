// SPDX-License-Identifier: Apache-2.0
#include "conformance/compiler_conformance.hpp"

#include "backends/cccl/cccl_compiler.hpp"
#include "conformance/in_worker.hpp"
#include "core/cccl_envelope.hpp"
#include "support/fixtures/cccl_packages.hpp"
#include "support/processes/pch_process.hpp"

namespace kiln::test {
namespace {

struct CcclFixture {
  // Internal symbols contain the process id.
  static constexpr bool reproducible = false;

  std::unique_ptr<Compiler> compiler() {
    return std::make_unique<CcclCompiler>(cccl_package(), toolkit_nvrtc(), shared_digests());
  }
  // The fastest to compile of the specs with several kernels.
  Unit plain() {
    return cccl::Spec::parse(R"({"algorithm": "histogram", "iterators": ["i32", "i32"], "type": "i32", "levels": 11})")
        .value();
  }
  Unit broken() { return cccl::select<std::int32_t>("x != nothing"); }
  Target target() { return {"sm_80", Form::Cccl}; }
  Target unsupported() { return {"sm_90a", Form::Cccl}; }
  std::string possible() { return "sm_90"; }
};

struct CcclInWorker : InWorker<CcclFixture> {
  // Its entry points are the kernels' symbols, which only the library knows.
  Unit unit() {
    static const std::vector<std::string> kernels = kernels_of_plain();
    Unit unit = plain();
    for (const std::string& kernel : kernels) unit = unit.with_entry(kernel);
    return unit;
  }

 private:
  std::vector<std::string> kernels_of_plain() {
    const auto workers = InWorker<CcclFixture>::compiler();
    const CompileResult compiled = workers->compile(recipe_for(*workers, plain(), target()), {}).value();
    return decode_cccl_envelope(compiled.artifact.bytes.view()).value().kernels;
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(CcclInWorker, CompilerConformance, CcclInWorker);

}  // namespace
}  // namespace kiln::test
