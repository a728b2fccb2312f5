// SPDX-License-Identifier: Apache-2.0
// The driver double in an unmodified process, configured by the environment.
#include "base/process/process.hpp"
#include "fixture.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

TEST(DoubleProcess, IsConfiguredByEnvironmentAndReportsAtExit) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  const TemporaryDirectory directory;
  write_text(directory.path("cubin"), compiled_kernels("sm_90"));
  Process::SpawnOptions start;
  start.arguments = {KILN_FAKE_DRIVER_USER, directory.path("cubin")};
  start.environment = current_environment();
  for (const std::string& setting :
       {"LD_LIBRARY_PATH=" + FakeCudaDriver::directory(), std::string("KILN_FAKE_DRIVER_DEVICES=sm_80,sm_90"),
        std::string("KILN_FAKE_DRIVER_KERNELS=" KILN_FAKE_DRIVER_HOST_KERNELS),
        "KILN_TEST_RAN=" + directory.path("ran"), "KILN_FAKE_DRIVER_REPORT=" + directory.path("report")}) {
    start.environment.insert(start.environment.begin(), setting);  // before the variables of this process
  }
  auto process = Process::spawn(start);
  ASSERT_TRUE(process.has_value());
  const auto end = process->wait(30s);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code, 0);
  EXPECT_EQ(end->signal, 0);
  EXPECT_EQ(read_text(directory.path("ran")), "nothing on 1");
  const std::string report = read_text(directory.path("report"));
  for (const char* line : {"launches 1\n", "loads 1\n", "calls.cuLaunchKernelEx 1\n", "contexts 1\n", "streams 1\n",
                           "libraries 1\n", "stale_uses 0\n", "pending 0\n"}) {
    EXPECT_NE(report.find(line), std::string::npos) << line << report;
  }
}

}  // namespace
}  // namespace kiln::test
