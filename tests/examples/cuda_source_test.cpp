// The CUDA text of the family, computed for real: the driver double gets the cubins that NVRTC made, and where a device
// would run them it runs the same text as the host's compiler made it. So what is shown is that the text is right and
// that its arguments arrive; a device's own code is not run here.
#include <gtest/gtest.h>

#include "check.hpp"
#include "examples/host_kernels.hpp"
#include "support/driver_double/control.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {
namespace {

using semiring::Backend;
using semiring::Outcome;
using semiring::Semiring;

TEST(SemiringCudaSource, GetsAllThirtyOneRightWhereTheHostRunsIt) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  DriverDouble driver("sm_90");
  for (const HostKernel& kernel : host_kernels()) driver.on_launch(kernel.name, kernel.run);

  const TemporaryDirectory folder;
  SessionOptions options;
  options.settings = {{"cache.dir", folder.path("cache")}, {"driver", DriverDouble::path()}};
  options.locked = {"cache.dir", "driver"};
  Session session = Session::open(options).value();
  session.request(semiring::everything(Backend::Cuda));
  session.make_current("cuda").value();
  const Stream stream = session.stream("cuda").value();
  Semiring library(session, Backend::Cuda);
  for (const semiring::Member& member : semiring::members()) {
    EXPECT_EQ(check(library, stream, member.name), Outcome::Right) << member.name;
  }
}

}  // namespace
}  // namespace kiln::test
