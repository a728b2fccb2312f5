#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/get_process.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

// cpu_only_main where there is no OpenCL driver to be found. (That there is none for CUDA is the machine's affair.)
class CpuOnlyProgram : public testing::Test {
 protected:
  void SetUp() override {
    struct stat found = {};
    if (stat("/dev/nvidiactl", &found) == 0) GTEST_SKIP() << "this machine has an NVIDIA device";
  }

  GetProcess run(std::vector<std::string> before = {}) const {
    GetProcess::Start start;
    start.before = std::move(before);
    // Leaks cannot be looked for under a tracer, and only sanitizer builds read this.
    start.environment = {{"OCL_ICD_VENDORS", folder_.path("no-such-folder")},
                         {"HOME", folder_.path()},
                         {"ASAN_OPTIONS", "detect_leaks=0"}};
    return GetProcess(start, folder_.path("output"));
  }

  // The lines of a trace that lie between the program's marks.
  static std::vector<std::string> between_marks(const std::string& trace) {
    std::vector<std::string> lines;
    std::istringstream all(trace);
    bool inside = false;
    for (std::string line; std::getline(all, line);) {
      if (line.find("write(2, \"END") != std::string::npos) inside = false;
      if (inside) lines.push_back(line);
      if (line.find("write(2, \"MAIN") != std::string::npos) inside = true;
    }
    return lines;
  }

  const TemporaryDirectory folder_;
};

TEST_F(CpuOnlyProgram, StaysOneThreadWithoutAGpuLibraryAndSubmitsNothing) {
  GetProcess process = run();
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("submitted 0"), 1) << process.output();
  EXPECT_EQ(process.count("mapped"), 0) << process.output();
#ifndef __SANITIZE_THREAD__  // which adds a thread of its own
  EXPECT_EQ(process.count("threads 1"), 1) << process.output();
#endif
}

TEST_F(CpuOnlyProgram, OpensNoFileAndStartsNothingAndLeavesNothingBehind) {
  GetProcess process =
      run({"strace", "-f", "-qq", "-o", folder_.path("trace"), "-e",
           "trace=open,openat,openat2,creat,mkdir,mkdirat,clone,clone3,fork,vfork,execve,socket,write"});
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  const std::string trace = slurp(folder_.path("trace"));
  ASSERT_NE(trace.find("write(2, \"END"), std::string::npos) << trace;
  for (const std::string& line : between_marks(trace)) {
    // To look and find nothing is allowed: that is how one learns that there is no driver.
    EXPECT_NE(line.find(" = -1 ENOENT"), std::string::npos) << line;
  }
  std::vector<std::string> left = files_below(folder_.path());
  EXPECT_EQ(left.size(), 2U) << "besides the test's own output and trace there is " << left.front();
}

}  // namespace
}  // namespace kiln::test
