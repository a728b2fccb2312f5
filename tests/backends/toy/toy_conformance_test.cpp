// SPDX-License-Identifier: Apache-2.0
// The suites that every backend passes.
#include "conformance/compiler_conformance.hpp"
#include "conformance/device_conformance.hpp"

#include "backends/toy/toy_device.hpp"
#include "backends/toy/toy_fixture.hpp"
#include "support/fixtures/recipes.hpp"

namespace kiln::test {
namespace {

struct ToyFixture {
  static constexpr bool reproducible = true;

  std::unique_ptr<Compiler> compiler() { return std::make_unique<ToyCompiler>(); }
  Unit unit() { return toy_saxpy(); }
  Unit broken() { return Unit::of_kind(kToyKind, "broken.toy", "kernel broken count\n  add\n"); }
  Target target() { return toy_target(); }
  Target unsupported() { return Target::sm(80); }
  std::string possible() { return toy_target().name(); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Toy, CompilerConformance, ToyFixture);

class ToySetup : public DeviceSetup {
 public:
  std::unique_ptr<Device> open(Allocator allocator) override { return std::make_unique<ToyDevice>(allocator); }
  Artifact artifact() override {
    ToyCompiler compiler;
    return compiler.compile(recipe_for(compiler, toy_saxpy(), toy_target()), {}).value().artifact;
  }
  std::size_t too_much() override { return 2 * ToyDevice::kMemory; }
};

INSTANTIATE_TEST_SUITE_P(Toy, DeviceConformance,
                         testing::Values(DeviceHarness{"toy", [] { return std::make_unique<ToySetup>(); }}));

}  // namespace
}  // namespace kiln::test
