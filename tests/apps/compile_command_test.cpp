// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <filesystem>

#include "apps/run_kiln.hpp"

namespace kiln::test {
namespace {

using Strings = std::vector<std::string>;

TEST_F(KilnProgram, CompileJsonHasDocumentedFieldsPerTarget) {
  write("k.cu", kSmallKernel);
  const Ran ran = run({"compile", "k.cu", "--arch", "sm_75,sm_80", "--entry", "k", "--json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto results = ran.json()["results"];
  ASSERT_EQ(results.size(), 2u) << ran.out;
  EXPECT_EQ(results[0]["target"], "sm_75");
  EXPECT_EQ(results[1]["target"], "sm_80");
  for (const auto& result : results) {
    EXPECT_EQ(result["origin"], "compiled");
    EXPECT_EQ(result["key"].get<std::string>().size(), 64u);
    EXPECT_GT(result["bytes"].get<int>(), 500);
    EXPECT_GT(result["ms"].get<double>(), 0);
    EXPECT_EQ(result["entries"]["k"], "k");
  }
  EXPECT_EQ(ran.err, "") << "a pipe gets only the result";
}

TEST_F(KilnProgram, SecondProcessHitsDiskWithoutOpeningCompiler) {
  write("k.cu", kSmallKernel);
  const Strings command = {"compile", "k.cu", "--arch", "sm_75,sm_80,sm_90,sm_100,sm_120", "--entry", "k", "--json"};
  ASSERT_EQ(origins(run(command)), Strings(5, "compiled"));
  if (!std::filesystem::exists("/usr/bin/strace")) GTEST_SKIP() << "needs strace";
  Strings traced = {"/usr/bin/strace", "-f", "-o", path("trace"), "-e", "trace=open,openat,execve", KILN_PROGRAM};
  traced.insert(traced.end(), command.begin(), command.end());
  // The leak checker cannot run under strace, because both use ptrace.
  const Ran ran = run_program(traced, {{"ASAN_OPTIONS", "detect_leaks=0"}});
  EXPECT_EQ(origins(ran), Strings(5, "disk"));
  // A stat of the compiler library is allowed; a successful open is not.
  const Ran opened =
      run_program({"/usr/bin/grep", "-E", "(libnvrtc|libcuda|libOpenCL)[^\"]*\".* = [0-9]|kiln-worker", path("trace")});
  EXPECT_EQ(opened.out, "");
  EXPECT_EQ(opened.exit_code, 1);
}

TEST_F(KilnProgram, CompileAcceptsCompilerStyleOptions) {
  write("include/a.h", "#define A 1\n");
  write("k.cu", "#include <a.h>\ntemplate <class T> __global__ void s(T* x) { x[0] = A + B; }\n");
  const Ran ran = run({"compile", "k.cu", "--arch", "sm_80", "-Iinclude", "-DB=2", "-e", "s<float>", "--option",
                       "-std=c++17", "--json", "--", "-use_fast_math"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.json()["results"][0]["entries"]["s<float>"], "_Z1sIfEvPT_");
}

TEST_F(KilnProgram, HeadersNextToSourceAreFoundFromAnyDirectory) {
  write("src/beside.h", "#define A 1\n");
  write("src/k.cu", "#include \"beside.h\"\nextern \"C\" __global__ void k(int* x) { *x = A; }\n");
  EXPECT_EQ(origins(run({"compile", "src/k.cu", "--arch", "sm_80", "--json"})), Strings{"compiled"});
  EXPECT_EQ(origins(run({"compile", "src/k.cu", "--arch", "sm_80", "--json"})), Strings{"disk"});
  write("src/beside.h", "#define A 22\n");
  EXPECT_EQ(origins(run({"compile", "src/k.cu", "--arch", "sm_80", "--json"})), Strings{"compiled"});
}

TEST_F(KilnProgram, OutputIsWrittenToFileOrDirectory) {
  write("k.cu", kSmallKernel);
  ASSERT_EQ(run({"compile", "k.cu", "--arch", "compute_80", "-o", "k.ptx"}).exit_code, 0);
  ASSERT_EQ(run({"compile", "k.cu", "--arch", "sm_80,compute_80", "-o", "out/"}).exit_code, 0);
  EXPECT_GT(std::filesystem::file_size("out/k.sm_80.cubin"), 500u);
  EXPECT_EQ(std::filesystem::file_size("out/k.compute_80.ptx"), std::filesystem::file_size("k.ptx"));
  const Ran ran = run({"compile", "k.cu", "--arch", "sm_80,compute_80", "-o", "one"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_TRUE(ran.says("give a directory")) << ran.err;
  EXPECT_NE(run({"compile", "k.cu", "--arch", "compute_80", "-o", "-"}).out.find(".visible .entry k"),
            std::string::npos);
}

TEST_F(KilnProgram, CompileErrorReturnsOneAndPrintsLogOnce) {
  write("bad.cu", "extern \"C\" __global__ void k(int* x) { *x = oops; }\n");
  const Ran ran = run({"compile", "bad.cu", "--arch", "sm_80,sm_90", "--json"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_NE(ran.err.find("unit 'bad.cu': bad.cu(1): error: identifier \"oops\" is undefined"), std::string::npos)
      << ran.err;
  const std::size_t first = ran.err.find("{ *x = oops; }");  // the log quotes the line
  ASSERT_NE(first, std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("{ *x = oops; }", first + 1), std::string::npos) << ran.err;
  const auto json = ran.json();
  EXPECT_TRUE(json["results"].empty());
  EXPECT_EQ(json["errors"].size(), 2u);
  EXPECT_EQ(json["errors"][0]["code"], "compile_failed");
}

TEST_F(KilnProgram, OtherFilesCompileIfOneFails) {
  write("bad.cu", "oops\n");
  write("k.cu", kSmallKernel);
  const Ran ran = run({"compile", "bad.cu", "k.cu", "--arch", "sm_80", "--json"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(origins(ran), Strings{"compiled"});
}

TEST_F(KilnProgram, CompileNeverDeniesMissAndServesHit) {
  write("k.cu", kSmallKernel);
  const Strings command = {"compile", "k.cu", "--arch", "sm_80", "--json"};
  const Ran rejected = run(command, {{"KILN_COMPILE", "never"}});
  EXPECT_EQ(rejected.exit_code, 4);
  for (const char* part : {"k.cu", "sm_80", "disk"}) EXPECT_TRUE(rejected.says(part)) << rejected.err;
  ASSERT_EQ(origins(run(command)), Strings{"compiled"});
  EXPECT_EQ(origins(run(command, {{"KILN_COMPILE", "never"}})), Strings{"disk"});
}

TEST_F(KilnProgram, DisabledCompilesEveryTimeWithoutCaching) {
  write("k.cu", kSmallKernel);
  const Strings command = {"compile", "k.cu", "--arch", "sm_80", "--json"};
  EXPECT_EQ(origins(run(command, {{"KILN_DISABLE", "1"}})), Strings{"compiled"});
  EXPECT_EQ(origins(run(command, {{"KILN_DISABLE", "1"}})), Strings{"compiled"});
  EXPECT_FALSE(std::filesystem::exists("cache"));
}

TEST_F(KilnProgram, UnsupportedArchitectureReturnsThree) {
  write("k.cu", kSmallKernel);
  const Ran ran = run({"compile", "k.cu", "--arch", "sm_20"});
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_TRUE(ran.says("sm_80")) << "the message lists the supported architectures: " << ran.err;
}

TEST_F(KilnProgram, VerbosePrintsEventsAndQuietPrintsNothing) {
  write("k.cu", kSmallKernel);
  EXPECT_TRUE(run({"compile", "k.cu", "--arch", "sm_80", "-v"}).says("published k.cu"));
  const std::map<std::string, std::string> unknown = {{"KILN_CACHE_MAXSIZE", "1G"}};
  EXPECT_TRUE(run({"compile", "k.cu", "--arch", "sm_80"}, unknown).says("did you mean KILN_CACHE_MAX_SIZE?"));
  EXPECT_EQ(run({"compile", "k.cu", "--arch", "sm_80", "--quiet"}, unknown).err, "");
}

TEST_F(KilnProgram, OpenClIsCompiledAndCached) {
  write("k.cl", "__kernel void k(__global float* x) { x[get_global_id(0)] += 1; }\n");
  const Ran first = run({"compile", "k.cl", "--entry", "k", "--json"});
  if (first.exit_code == 3) GTEST_SKIP() << "no OpenCL device: " << first.err;
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(origins(first), Strings{"compiled"});
  EXPECT_EQ(origins(run({"compile", "k.cl", "--backend", "opencl", "--entry", "k", "--json"})), Strings{"disk"});
}

}  // namespace
}  // namespace kiln::test
