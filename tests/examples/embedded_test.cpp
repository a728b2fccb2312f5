// SPDX-License-Identifier: Apache-2.0
// examples/embedded: a program that contains its kernels.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "apps/run_kiln.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/toolkit.hpp"

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

  /// Returns the command in an isolated environment: without network, CUDA toolkit, kiln-worker and the sources of the
  /// example. Empty if this machine does not allow it.
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

  /// No variables are set, and the home directory is empty.
  Variables bare() {
    fs::create_directories(path("home"));
    return {{"KILN_CACHE_DIR", ""}};
  }
};

TEST_F(EmbeddedExample, CompilesNothingAndLeavesCacheEmpty) {
  expect_all_from_the_bundle(run_program({KILN_EMBEDDED}, bare()));
  EXPECT_TRUE(fs::is_empty(path("home"))) << "artifacts of a bundle are not copied to the cache";
}

TEST_F(EmbeddedExample, RunsWithoutCompilerHeadersAndNetwork) {
  const std::vector<std::string> embedded = in_a_bare_world({KILN_EMBEDDED});
  if (embedded.empty()) GTEST_SKIP() << "no permission to create namespaces";
  write("k.cu", kSmallKernel);
  const Ran compiler = run_program(in_a_bare_world({KILN_PROGRAM, "compile", "k.cu", "--arch", "sm_80"}), bare());
  EXPECT_EQ(compiler.exit_code, 3) << "no compiler must be found: " << compiler.out << compiler.err;
  expect_all_from_the_bundle(run_program(embedded, bare()));
}

TEST_F(EmbeddedExample, DoesNotOpenCompilerOrStartProcess) {
  const Ran ran = run_program(
      {"/usr/bin/env", "strace", "-f", "-o", path("calls"), "-e", "trace=open,openat,execve", KILN_EMBEDDED}, bare());
  if (ran.exit_code != 0 && ran.says("ptrace")) GTEST_SKIP() << "no permission to use strace";
  expect_all_from_the_bundle(ran);
  const std::string calls = read_text(path("calls"));
  EXPECT_NE(calls.find("libkiln.so"), std::string::npos) << "strace recorded nothing";
  EXPECT_EQ(calls.find("nvrtc"), std::string::npos) << calls;
  EXPECT_EQ(count(calls, "execve("), 1U) << calls;
}

TEST_F(EmbeddedExample, LaunchesBundledKernelOnFakeDriver) {
  const Variables device = {{"KILN_DRIVER", KILN_FAKE_DRIVER}, {"KILN_FAKE_DRIVER_DEVICES", "sm_86"}};
  const Ran ran = run_program({KILN_EMBEDDED}, device);
  EXPECT_EQ(count(ran.out, "heat_step was launched"), 1U) << ran.out << ran.err;
  EXPECT_EQ(count(ran.out, "heat.cu for sm_86: ready, from bundle"), 1U) << "sm_80 serves it: " << ran.out;
  EXPECT_EQ(count(ran.out, "compiled: 0\n"), 1U) << ran.out;
}

TEST_F(EmbeddedExample, FindsBundleNextToProgram) {
  const Variables beside = {{"KILN_BUNDLES", "$ORIGIN/embedded.kiln"}, {"KILN_COMPILE", "never"}};
  Variables trusted = beside;
  trusted["KILN_TRUST_UNSIGNED"] = "true";
  expect_all_from_the_bundle(run_program({KILN_EMBEDDED_BESIDE}, trusted));

  const Ran rejected = run_program({KILN_EMBEDDED_BESIDE}, beside);
  EXPECT_NE(rejected.exit_code, 0) << "it is neither signed nor part of the program: " << rejected.out;
}

}  // namespace
}  // namespace kiln::test
