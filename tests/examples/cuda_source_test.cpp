// SPDX-License-Identifier: Apache-2.0
// Executes the CUDA source of the family: the fake driver gets the cubins from NVRTC, and in place of the device it
// runs the same source built by the host compiler. This tests the source and the passing of arguments, but not the
// device code.
#include <gtest/gtest.h>

#include "check.hpp"
#include "examples/host_kernels.hpp"
#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

using semiring::Backend;
using semiring::Outcome;
using semiring::Semiring;

TEST(SemiringCudaSource, All31KernelsAreRightOnHost) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  FakeCudaDriver driver("sm_90");
  for (const HostKernel& kernel : host_kernels()) driver.on_launch(kernel.name, kernel.run);

  const TemporaryDirectory directory;
  SessionOptions options;
  options.settings = {{"cache.dir", directory.path("cache")}, {"driver", FakeCudaDriver::path()}};
  options.locked = {"cache.dir", "driver"};
  Session session = Session::open(options).value();
  session.request(semiring::everything(kiln::Backend::Cuda));
  session.make_current(kiln::Backend::Cuda).value();
  const Stream stream = session.stream(kiln::Backend::Cuda).value();
  Semiring library(session, Backend::Cuda);
  for (const semiring::Member& member : semiring::members()) {
    EXPECT_EQ(check(library, stream, member.name), Outcome::Right) << member.name;
  }
}

}  // namespace
}  // namespace kiln::test
