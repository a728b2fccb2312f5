// Places where no cache can be: the artifact is returned all the same, and the reason is told.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "apps/run_kiln.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

class Trouble : public KilnProgram {
 protected:
  void SetUp() override {
    KilnProgram::SetUp();
    write("k.cu", kSmallKernel);
  }
  Ran compile(const std::map<std::string, std::string>& variables = {}) {
    return run({"compile", "k.cu", "--arch", "sm_80", "--json"}, variables);
  }
  // As a user who is nobody: root would be let in everywhere. Anyone else is nobody enough.
  Ran compile_as_nobody(const std::map<std::string, std::string>& variables) {
    if (geteuid() != 0) return compile(variables);
    return run_program({kSetpriv, "--reuid", "12345", "--regid", "12345", "--clear-groups", KILN_PROGRAM, "compile",
                        "k.cu", "--arch", "sm_80", "--json"},
                       variables);
  }
  bool can_be_nobody() {
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

TEST_F(Trouble, ACacheRootThatIsAFifoIsNamedAndDoesNotHang) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  expect_compiled_with_reason(compile({{"KILN_CACHE_DIR", path("fifo")}}), "fifo");
}

TEST_F(Trouble, ACacheRootThatIsAFileIsNamed) {
  write("file", "");
  expect_compiled_with_reason(compile({{"KILN_CACHE_DIR", path("file")}}), "file");
}

TEST_F(Trouble, ACacheRootThatOthersCanWriteToIsNamed) {
  fs::create_directory("open");
  ASSERT_EQ(chmod("open", 0777), 0);
  expect_compiled_with_reason(compile({{"KILN_CACHE_DIR", path("open")}}), "chmod go-w");
}

TEST_F(Trouble, APlaceWhereNoFolderCanBeMadeIsNamed) {
  expect_compiled_with_reason(compile({{"KILN_CACHE_DIR", "/proc/kiln"}}), "/proc/kiln");
}

TEST_F(Trouble, AFolderThatCannotBeWrittenIsNamed) {
  if (!can_be_nobody()) GTEST_SKIP() << "cannot be another user here";
  fs::create_directory("sealed");
  ASSERT_EQ(chmod("sealed", 0555), 0);
  expect_compiled_with_reason(compile_as_nobody({{"KILN_CACHE_DIR", path("sealed")}}), "sealed");
}

TEST_F(Trouble, ACacheFilledByRootServesAUserWithoutHomeOrName) {
  if (geteuid() != 0 || !can_be_nobody()) GTEST_SKIP() << "needs root";
  ASSERT_EQ(origins(compile()), Strings{"compiled"});
  ASSERT_EQ(run_program({"/bin/chmod", "-R", "a+rX", path("cache")}).exit_code, 0);
  const Ran ran = compile_as_nobody({{"HOME", ""}, {"KILN_COMPILE", "never"}});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(origins(ran), Strings{"disk"});
}

TEST_F(Trouble, ASymbolicLinkOfOnesOwnIsFollowed) {
  fs::create_directory("real");
  fs::create_symlink(path("real"), "link");
  EXPECT_EQ(origins(compile({{"KILN_CACHE_DIR", path("link")}})), Strings{"compiled"});
  EXPECT_EQ(origins(compile({{"KILN_CACHE_DIR", path("link")}})), Strings{"disk"});
}

TEST_F(Trouble, WithoutAHomeTheCacheIsInAPrivatePlaceAndWorks) {
  const std::map<std::string, std::string> variables = {
      {"HOME", ""}, {"KILN_CACHE_DIR", ""}, {"XDG_RUNTIME_DIR", path("run")}};
  fs::create_directory("run");
  EXPECT_EQ(origins(compile(variables)), Strings{"compiled"});
  EXPECT_EQ(origins(compile(variables)), Strings{"disk"});
}

TEST_F(Trouble, WithoutAnyPlaceForACacheItCompilesAndSaysSo) {
  const Ran ran = compile({{"HOME", ""}, {"KILN_CACHE_DIR", ""}, {"XDG_RUNTIME_DIR", path("nowhere/at/all")}});
  expect_compiled_with_reason(ran, "no place for a cache");
}

TEST_F(Trouble, AReaderThatGoesAwayIsNoAccident) {
  const Ran ran = run_program({"/bin/sh", "-c", std::string(KILN_PROGRAM) + " help | true"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

}  // namespace
}  // namespace kiln::test
