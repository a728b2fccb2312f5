// The driver double in a process that knows nothing of it, set up by the environment.
#include "base/process.hpp"
#include "driver_double_fixture.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

TEST(DoubleProcess, IsSetUpByTheEnvironmentAndReportsAtItsEnd) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  const TemporaryDirectory folder;
  spit(folder.path("cubin"), compiled_kernels("sm_90"));
  Process::Start start;
  start.arguments = {KILN_DOUBLE_USER, folder.path("cubin")};
  start.environment = current_environment();
  for (const std::string& setting :
       {"LD_LIBRARY_PATH=" + DriverDouble::folder(), std::string("KILN_DOUBLE_DEVICES=sm_80,sm_90"),
        std::string("KILN_DOUBLE_KERNELS=" KILN_DOUBLE_HOST_KERNELS), "KILN_TEST_RAN=" + folder.path("ran"),
        "KILN_DOUBLE_REPORT=" + folder.path("report")}) {
    start.environment.insert(start.environment.begin(), setting);  // in front of what this process has
  }
  auto process = Process::spawn(start);
  ASSERT_TRUE(process.ok());
  const auto end = process->wait(30s);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code, 0);
  EXPECT_EQ(end->signal, 0);
  EXPECT_EQ(slurp(folder.path("ran")), "nothing on 1");
  const std::string report = slurp(folder.path("report"));
  for (const char* line : {"launches 1\n", "loads 1\n", "calls.cuLaunchKernelEx 1\n", "contexts 1\n", "streams 1\n",
                           "libraries 1\n", "stale_uses 0\n", "pending 0\n"}) {
    EXPECT_NE(report.find(line), std::string::npos) << line << report;
  }
}

}  // namespace
}  // namespace kiln::test
