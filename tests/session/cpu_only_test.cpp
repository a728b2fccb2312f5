// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>
#include <string>
#include <vector>

#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/get_process.hpp"

namespace kiln::test {
namespace {

// Runs cpu_only_main without an OpenCL driver. The machine must not have a CUDA driver.
class CpuOnlyProgram : public testing::Test {
 protected:
  void SetUp() override {
    struct stat found = {};
    if (stat("/dev/nvidiactl", &found) == 0) GTEST_SKIP() << "this machine has an NVIDIA device";
  }

  GetProcess run(std::vector<std::string> before = {}) const {
    GetProcess::Start start;
    start.before = std::move(before);
    // Leak checking does not work under a tracer; only sanitizer builds read this variable.
    start.environment = {{"OCL_ICD_VENDORS", directory_.path("no-such-folder")},
                         {"HOME", directory_.path()},
                         {"ASAN_OPTIONS", "detect_leaks=0"}};
    return GetProcess(start, directory_.path("output"));
  }

  // Returns the lines of a trace between the program's marks, without writes, which are marks or made by sanitizers.
  static std::vector<std::string> between_marks(const std::string& trace) {
    std::vector<std::string> lines;
    std::istringstream all(trace);
    bool inside = false;
    for (std::string line; std::getline(all, line);) {
      if (line.find("write(2, \"END") != std::string::npos) inside = false;
      if (inside && line.find(" write(") == std::string::npos) lines.push_back(line);
      if (line.find("write(2, \"MAIN") != std::string::npos) inside = true;
    }
    return lines;
  }

  const TemporaryDirectory directory_;
};

TEST_F(CpuOnlyProgram, StaysSingleThreadedWithoutGpuLibraryAndSubmitsNothing) {
  GetProcess process = run();
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("submitted 0"), 1) << process.output();
  EXPECT_EQ(process.count("mapped"), 0) << process.output();
  EXPECT_EQ(process.count("not ready k.cu: there is no device for units of kind cuda"), 1) << process.output();
  EXPECT_EQ(process.count("not ready k.cl: there is no device for units of kind opencl"), 1) << process.output();
  EXPECT_EQ(process.count("not ready reduce_sum_f32: there is no device for units of kind cuda"), 1)
      << process.output();
#ifndef __SANITIZE_THREAD__  // the sanitizer adds a thread
  EXPECT_EQ(process.count("threads 1"), 1) << process.output();
#endif
}

TEST_F(CpuOnlyProgram, OpensNoFileAndStartsNoProcessOrThread) {
  GetProcess process =
      run({"strace", "-f", "-qq", "-o", directory_.path("trace"), "-e",
           "trace=open,openat,openat2,creat,mkdir,mkdirat,clone,clone3,fork,vfork,execve,socket,write"});
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  const std::string trace = read_text(directory_.path("trace"));
  ASSERT_NE(trace.find("write(2, \"END"), std::string::npos) << trace;
  for (const std::string& line : between_marks(trace)) {
    // A failed lookup is allowed: it is how the program detects that there is no driver.
    EXPECT_NE(line.find(" = -1 ENOENT"), std::string::npos) << line;
  }
  std::vector<std::string> left = files_below(directory_.path());
  EXPECT_EQ(left.size(), 2U) << "in addition to the test's output and trace there is " << left.front();
}

}  // namespace
}  // namespace kiln::test
