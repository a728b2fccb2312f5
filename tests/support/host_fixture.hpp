#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/get_process.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {

/// Host programs (host_main) with a cache, slots and a folder for temporary files of their own.
class HostFixture : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    std::filesystem::create_directory(folder_.path("tmp"));
    std::filesystem::create_directory(folder_.path("run"));
    std::filesystem::permissions(folder_.path("run"), std::filesystem::perms(0700));
  }
  GetProcess start(GetProcess::Start how) {
    how.environment.emplace("KILN_CACHE_DIR", cache());
    how.environment.emplace("XDG_RUNTIME_DIR", folder_.path("run"));
    how.environment.emplace("TMPDIR", folder_.path("tmp"));
    how.environment.emplace("KILN_PCH", "on");
    return {how, folder_.path("out-" + std::to_string(++outputs_))};
  }
  GetProcess start(const std::string& manner, int first, int count,
                   std::map<std::string, std::string> environment = {}) {
    return start({{manner, std::to_string(first), std::to_string(count)}, std::move(environment), {}, {}});
  }
  /// What NVRTC makes of the units in a process without workers, as `artifact` lines.
  std::set<std::string> reference(int first, int count) {
    GetProcess bare = start("plain", first, count, {{"KILN_JOBS", "0"}, {"KILN_DISABLE", "1"}});
    EXPECT_EQ(bare.exit_code(), 0) << bare.output();
    return artifacts(bare);
  }
  static std::set<std::string> artifacts(const GetProcess& process) {
    std::set<std::string> found;
    std::istringstream lines(process.output());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("artifact ")) found.insert(line);
    }
    return found;
  }
  static bool says(const GetProcess& process, const std::string& line) { return process.count(line) > 0; }
  std::string cache() const { return folder_.path("cache"); }
  /// What nobody needs any more.
  std::vector<std::string> temporary_files() const {
    std::vector<std::string> found = files_below(folder_.path("tmp"));
    for (const std::string& file : files_below(cache())) {
      if (file.ends_with(".tmp") || file.find("/tmp/", cache().size()) != std::string::npos) found.push_back(file);
    }
    return found;
  }

  const TemporaryDirectory folder_;
  int outputs_ = 0;
};

}  // namespace kiln::test
