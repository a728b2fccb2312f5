// examples/embedded: a program that has its kernels with it.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "apps/run_kiln.hpp"
#include "support/files.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

class EmbeddedExample : public KilnProgram {
 protected:
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t times = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
    return times;
  }
  static void expect_all_from_the_bundle(const Ran& ran) {
    EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
    EXPECT_EQ(count(ran.out, "from bundle"), 4U) << ran.out << ran.err;
    EXPECT_EQ(count(ran.out, "compiled: 0\n"), 1U) << ran.out;
  }

  /// The command in a world of its own: no network, no CUDA toolkit, no kiln-worker, no source of the example. Empty
  /// where this machine does not let a test make one.
  std::vector<std::string> in_a_bare_world(const std::vector<std::string>& command) {
    std::string script = "set -e\nmount -t tmpfs none '" + fs::canonical(toolkit_root()).string() +
                         "'\nmount --bind /dev/null '" KILN_WORKER "'\nmount -t tmpfs none '" KILN_SOURCE_DIR
                         "/examples/embedded'\n";
    if (fs::exists(KILN_SOURCE_DIR "/.venv")) script += "mount -t tmpfs none '" KILN_SOURCE_DIR "/.venv'\n";
    std::vector<std::string> all = {"/usr/bin/env", "unshare", "-rmn", "sh",
                                    write("bare.sh", script + "exec \"$@\"\n")};
    std::vector<std::string> nothing = all;
    nothing.emplace_back("true");
    if (run_program(nothing).exit_code != 0) return {};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }

  /// Nothing is set, and the home is a folder with nothing in it.
  Variables bare() {
    fs::create_directories(path("home"));
    return {{"KILN_CACHE_DIR", ""}};
  }
};

TEST_F(EmbeddedExample, CompilesNothingWhereTheCacheIsEmptyAndLeavesItEmpty) {
  expect_all_from_the_bundle(run_program({KILN_EMBEDDED}, bare()));
  EXPECT_TRUE(fs::is_empty(path("home"))) << "a bundle's artifacts need no other copy";
}

TEST_F(EmbeddedExample, RunsWhereThereIsNoCompilerNoHeaderAndNoNetwork) {
  const std::vector<std::string> embedded = in_a_bare_world({KILN_EMBEDDED});
  if (embedded.empty()) GTEST_SKIP() << "no namespaces for tests here";
  write("k.cu", kSmallKernel);
  const Ran compiler = run_program(in_a_bare_world({KILN_PROGRAM, "compile", "k.cu", "--arch", "sm_80"}), bare());
  EXPECT_EQ(compiler.exit_code, 3) << "there must be no compiler to be found: " << compiler.out << compiler.err;
  expect_all_from_the_bundle(run_program(embedded, bare()));
}

TEST_F(EmbeddedExample, OpensNoCompilerAndStartsNoProcess) {
  const Ran ran = run_program(
      {"/usr/bin/env", "strace", "-f", "-o", path("calls"), "-e", "trace=open,openat,execve", KILN_EMBEDDED}, bare());
  if (ran.exit_code != 0 && ran.says("ptrace")) GTEST_SKIP() << "no strace for tests here";
  expect_all_from_the_bundle(ran);
  const std::string calls = slurp(path("calls"));
  EXPECT_NE(calls.find("libkiln.so"), std::string::npos) << "strace saw nothing";
  EXPECT_EQ(calls.find("nvrtc"), std::string::npos) << calls;
  EXPECT_EQ(count(calls, "execve("), 1U) << calls;
}

TEST_F(EmbeddedExample, LaunchesWhatTheBundleHasThroughTheDriverDouble) {
  const Variables device = {{"KILN_DRIVER", KILN_DRIVER_DOUBLE}, {"KILN_DOUBLE_DEVICES", "sm_86"}};
  const Ran ran = run_program({KILN_EMBEDDED}, device);
  EXPECT_EQ(count(ran.out, "heat_step was launched"), 1U) << ran.out << ran.err;
  EXPECT_EQ(count(ran.out, "heat.cu for sm_86: ready, from bundle"), 1U) << "sm_80 serves it: " << ran.out;
  EXPECT_EQ(count(ran.out, "compiled: 0\n"), 1U) << ran.out;
}

TEST_F(EmbeddedExample, FindsABundleThatLiesBesideIt) {
  const Variables beside = {{"KILN_BUNDLES", "$ORIGIN/embedded.kiln"}, {"KILN_COMPILE", "never"}};
  Variables believed = beside;
  believed["KILN_TRUST_UNSIGNED"] = "true";
  expect_all_from_the_bundle(run_program({KILN_EMBEDDED_BESIDE}, believed));

  const Ran doubted = run_program({KILN_EMBEDDED_BESIDE}, beside);
  EXPECT_NE(doubted.exit_code, 0) << "nobody signed it, and it is no part of the program: " << doubted.out;
}

}  // namespace
}  // namespace kiln::test
