// SPDX-License-Identifier: Apache-2.0
// Locations that cannot hold a cache. The artifact is still returned and the reason is reported.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "apps/run_kiln.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

class Problem : public KilnProgram {
 protected:
  void SetUp() override {
    KilnProgram::SetUp();
    write("k.cu", kSmallKernel);
  }
  Ran compile(const std::map<std::string, std::string>& variables = {}) {
    return run({"compile", "k.cu", "--arch", "sm_80", "--json"}, variables);
  }
  // Runs as an unprivileged user, because root can write everywhere. Other users are already unprivileged.
  Ran run_unprivileged(const Strings& arguments, const std::map<std::string, std::string>& variables) {
    if (geteuid() != 0) return run(arguments, variables);
    Strings command{kSetpriv, "--reuid", "12345", "--regid", "12345", "--clear-groups", KILN_PROGRAM};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_program(command, variables);
  }
  Ran compile_unprivileged(const std::map<std::string, std::string>& variables) {
    return run_unprivileged({"compile", "k.cu", "--arch", "sm_80", "--json"}, variables);
  }
  bool can_drop_privileges() {
    if (geteuid() != 0) return true;
    chmod(root_.c_str(), 0755);
    return fs::exists(kSetpriv) &&
           run_program({kSetpriv, "--reuid", "12345", "--regid", "12345", "--clear-groups", KILN_PROGRAM, "version"})
                   .exit_code == 0;
  }
  static constexpr const char* kSetpriv = "/usr/bin/setpriv";

  void expect_compiled_with_reason(const Ran& ran, const std::string& reason) {
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(origins(ran), Strings{"compiled"});
    EXPECT_TRUE(ran.says("[cache_unavailable]")) << ran.err;
    EXPECT_TRUE(ran.says(reason)) << ran.err;
  }
};

TEST_F(Problem, FifoAsCacheRootIsReportedWithoutHang) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  expect_compiled_with_reason(compile({{"KILN_CACHE_DIR", path("fifo")}}), "fifo");
}

TEST_F(Problem, FileAsCacheRootIsReported) {
  write("file", "");
  expect_compiled_with_reason(compile({{"KILN_CACHE_DIR", path("file")}}), "file");
}

TEST_F(Problem, CacheRootWritableByOthersIsReported) {
  fs::create_directory("open");
  ASSERT_EQ(chmod("open", 0777), 0);
  expect_compiled_with_reason(compile({{"KILN_CACHE_DIR", path("open")}}), "chmod go-w");
}

TEST_F(Problem, UncreatableCacheRootIsReported) {
  expect_compiled_with_reason(compile({{"KILN_CACHE_DIR", "/proc/kiln"}}), "/proc/kiln");
}

TEST_F(Problem, ReadOnlyCacheRootIsReported) {
  if (!can_drop_privileges()) GTEST_SKIP() << "cannot run as another user";
  fs::create_directory("sealed");
  ASSERT_EQ(chmod("sealed", 0555), 0);
  expect_compiled_with_reason(compile_unprivileged({{"KILN_CACHE_DIR", path("sealed")}}), "sealed");
}

TEST_F(Problem, CacheFilledByRootServesUnknownUser) {
  if (geteuid() != 0 || !can_drop_privileges()) GTEST_SKIP() << "needs root";
  ASSERT_EQ(origins(compile()), Strings{"compiled"});
  ASSERT_EQ(run_program({"/bin/chmod", "-R", "a+rX", path("cache")}).exit_code, 0);
  const Ran ran = compile_unprivileged({{"HOME", ""}, {"KILN_COMPILE", "never"}});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(origins(ran), Strings{"disk"});
}

TEST_F(Problem, DoctorReportsCacheInTheHomeOfAnotherUser) {
  if (geteuid() != 0 || !can_drop_privileges()) GTEST_SKIP() << "needs root, to run as another user";
  fs::create_directory("home");  // of root, as in a container that sets HOME and changes the user
  const std::map<std::string, std::string> foreign = {{"HOME", path("home")}, {"KILN_CACHE_DIR", ""}};
  const auto cache = run_unprivileged({"doctor", "--json"}, foreign).finding("cache");
  EXPECT_EQ(cache["state"], "problem") << cache;
  EXPECT_NE(cache["text"].get<std::string>().find("cannot be created, so nothing is cached"), std::string::npos)
      << cache;
  EXPECT_NE(cache["advice"].get<std::string>().find("KILN_CACHE_DIR="), std::string::npos) << cache;
  EXPECT_EQ(detail(cache, "nearest existing directory"), path("home"));
  EXPECT_EQ(detail(cache, "owner"), "root");
  expect_compiled_with_reason(compile_unprivileged(foreign), "home");
  const auto own = run({"doctor", "--json"}, foreign).finding("cache");
  EXPECT_EQ(own["state"], "ok") << own;
  EXPECT_FALSE(fs::exists("home/.cache/kiln")) << "the check leaves nothing behind";
  for (const auto& each : fs::recursive_directory_iterator("home")) {
    EXPECT_EQ(each.path().string().find("kiln-check"), std::string::npos) << each.path();
  }
}

TEST_F(Problem, DoctorReportsDirectoryInWhichNothingCanBeCreated) {
  const auto cache = run({"doctor", "--json"}, {{"KILN_CACHE_DIR", "/proc/kiln"}}).finding("cache");
  EXPECT_EQ(cache["state"], "problem") << cache;
}

TEST_F(Problem, DoctorReportsReadOnlyCacheThatIsMissing) {
  const Ran ran =
      run({"doctor", "--json"}, {{"KILN_CACHE_DIR", ""}, {"KILN_CACHE_PATH", path("cache") + ":" + path("image")}});
  EXPECT_EQ(ran.finding("cache")["state"], "ok");
  EXPECT_EQ(ran.finding("read-only cache")["state"], "info") << ran.out;
}

TEST_F(Problem, OwnSymbolicLinkIsFollowed) {
  fs::create_directory("real");
  fs::create_symlink(path("real"), "link");
  EXPECT_EQ(origins(compile({{"KILN_CACHE_DIR", path("link")}})), Strings{"compiled"});
  EXPECT_EQ(origins(compile({{"KILN_CACHE_DIR", path("link")}})), Strings{"disk"});
}

TEST_F(Problem, CacheUsesPrivateDirectoryWithoutHome) {
  const std::map<std::string, std::string> variables = {
      {"HOME", ""}, {"KILN_CACHE_DIR", ""}, {"XDG_RUNTIME_DIR", path("run")}};
  fs::create_directory("run");
  EXPECT_EQ(origins(compile(variables)), Strings{"compiled"});
  EXPECT_EQ(origins(compile(variables)), Strings{"disk"});
}

TEST_F(Problem, CompilesAndReportsIfNoCacheLocationExists) {
  const Ran ran = compile({{"HOME", ""}, {"KILN_CACHE_DIR", ""}, {"XDG_RUNTIME_DIR", path("nowhere/at/all")}});
  expect_compiled_with_reason(ran, "no directory for the cache");
}

TEST_F(Problem, ClosedPipeIsNotAnError) {
  const Ran ran = run_program({"/bin/sh", "-c", std::string(KILN_PROGRAM) + " help | true"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

}  // namespace
}  // namespace kiln::test
