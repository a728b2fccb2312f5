// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "apps/run_kiln.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

using Variables = std::map<std::string, std::string>;

class Doctor : public KilnProgram {};

TEST_F(Doctor, FindsCompilerAndAdvisesOnEachCheck) {
  const Ran ran = run({"doctor", "--json"});
  EXPECT_EQ(ran.exit_code, 0) << ran.out;
  const auto json = ran.json();
  EXPECT_EQ(json["usable"], true);
  for (const auto& each : json["findings"]) {
    EXPECT_NE(each["text"], "") << each;
    EXPECT_NE(each["advice"], "") << each;
  }
  for (const char* about :
       {"NVRTC", "NVIDIA driver", "CCCL", "OpenCL", "worker", "headers", "cache", "configuration"}) {
    EXPECT_FALSE(ran.finding(about).is_null());
  }
  const auto nvrtc = ran.finding("NVRTC");
  ASSERT_FALSE(nvrtc["details"].empty());
  for (const auto& each : nvrtc["details"]) EXPECT_NE(each["why"], "") << each;
  EXPECT_EQ(ran.finding("cache")["state"], "ok");
}

TEST_F(Doctor, ReportsUnusableCacheAndReturnsZero) {
  write("cache", "a file instead of a directory\n");
  const Ran ran = run({"doctor", "--json"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.finding("cache")["state"], "problem");
  EXPECT_NE(ran.finding("cache")["text"].get<std::string>().find("not a directory"), std::string::npos);
}

TEST_F(Doctor, ReportsConfigurationWarnings) {
  const Ran ran = run({"doctor", "--json"}, {{"KILN_COMPILES", "never"}});
  const auto configuration = ran.finding("configuration");
  EXPECT_EQ(configuration["state"], "problem");
  EXPECT_NE(configuration["details"][0]["warning"].get<std::string>().find("KILN_COMPILE?"), std::string::npos);
}

TEST_F(Doctor, ReportsMissingWorker) {
  const Ran ran = run({"doctor", "--json"}, {{"KILN_WORKER", path("nowhere")}});
  EXPECT_EQ(ran.finding("worker")["state"], "problem");
}

TEST_F(Doctor, ReportsWorkerLimitAndPrecompiledHeaders) {
  const Ran on = run({"doctor", "--json"}, {{"KILN_JOBS", "7"}, {"KILN_PCH", "on"}});
  EXPECT_NE(on.finding("worker")["text"].get<std::string>().find("at most 7"), std::string::npos);
  EXPECT_EQ(on.finding("headers")["state"], "ok");
  EXPECT_NE(on.finding("headers")["text"].get<std::string>().find("parsed once"), std::string::npos);
  const Ran off = run({"doctor", "--json"}, {{"KILN_JOBS", "0"}, {"KILN_PCH", "off"}});
  EXPECT_NE(off.finding("worker")["text"].get<std::string>().find("jobs = 0"), std::string::npos);
  EXPECT_EQ(off.finding("headers")["state"], "info");
  EXPECT_NE(off.finding("headers")["text"].get<std::string>().find("pch.mode = off"), std::string::npos);
}

TEST_F(Doctor, ReportsPlaceOfPrecompiledHeadersInContainer) {
  const Ran ran = run({"doctor", "--json"}, {{"container", "podman"}, {"XDG_RUNTIME_DIR", path("run")}});
  const auto headers = ran.finding("headers");
  EXPECT_EQ(headers["state"], "ok");
  EXPECT_NE(headers["text"].get<std::string>().find("files without a name in /"), std::string::npos);
  EXPECT_NE(headers["details"][0]["value"].get<std::string>().find("in each process"), std::string::npos);
}

TEST_F(Doctor, ReportsWhetherNvrtcBundlesHeadersAndWhereTheyAre) {
  const std::string nvrtc = package_nvrtc(KILN_SOURCE_DIR);
  if (nvrtc.empty() || toolkit_nvrtc().empty()) GTEST_SKIP() << "needs the toolkit and the NVRTC of tools/setup.sh";
  const auto text = [](const Ran& ran) { return ran.finding("bundled headers")["text"].get<std::string>(); };
  const Ran old = run({"doctor", "--json"}, {{"KILN_NVRTC", toolkit_nvrtc()}});
  if (text(old).find("NVRTC 13.0") != std::string::npos) {
    EXPECT_NE(text(old).find("bundles no headers"), std::string::npos) << text(old);
  }
  const Ran off = run({"doctor", "--json"}, {{"KILN_NVRTC", nvrtc}, {"KILN_DISABLE", "1"}});
  EXPECT_NE(text(off).find("there is no cache"), std::string::npos) << text(off);
  const Ran before = run({"doctor", "--json"}, {{"KILN_NVRTC", nvrtc}});
  EXPECT_NE(text(before).find("the first unit that needs them installs them in " + path("cache/v1/headers/13.")),
            std::string::npos)
      << text(before);
  write("half.cu", "#include <cuda_fp16.h>\nextern \"C\" __global__ void k(__half* p) { *p = __hadd(*p, *p); }\n");
  const Ran compiled = run({"compile", "half.cu", "--arch", "sm_80"}, {{"KILN_NVRTC", nvrtc}});
  EXPECT_EQ(compiled.exit_code, 0) << compiled.out << compiled.err;
  const Ran after = run({"doctor", "--json"}, {{"KILN_NVRTC", nvrtc}});
  EXPECT_NE(text(after).find(", installed in " + path("cache/v1/headers/13.")), std::string::npos) << text(after);
  EXPECT_EQ(run({"cache", "stats"}).exit_code, 0);
  EXPECT_EQ(run({"cache", "gc"}).exit_code, 0);
  EXPECT_EQ(text(run({"doctor", "--json"}, {{"KILN_NVRTC", nvrtc}})), text(after));
  const std::string place = text(after).substr(text(after).rfind('/') + 1);
  std::filesystem::remove(path("cache/v1/headers/" + place + "/cuda_fp16.h"));
  const std::string incomplete = text(run({"doctor", "--json"}, {{"KILN_NVRTC", nvrtc}}));
  EXPECT_NE(incomplete.find("some files are missing"), std::string::npos) << incomplete;
  EXPECT_EQ(run({"cache", "clear", "--yes"}).exit_code, 0);
  EXPECT_EQ(text(run({"doctor", "--json"}, {{"KILN_NVRTC", nvrtc}})), text(before));
}

TEST_F(Doctor, PrintsHumanReadableText) {
  const Ran ran = run({"doctor"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_NE(ran.out.find("NVIDIA driver:"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find('\033'), std::string::npos) << "no colors in a pipe";
}

TEST_F(Doctor, ConclusionWithoutNvrtcDoesNotPromiseCuda) {
  const Variables none = {{"KILN_NVRTC", path("absent.so")}};
  const Ran ran = run({"doctor"}, none);
  const bool has_opencl = run({"doctor", "--json"}, none).json()["usable"];
  EXPECT_NE(ran.out.find(has_opencl ? "kiln can compile OpenCL C on this machine, but not CUDA C++: see NVRTC above."
                                    : "kiln cannot compile on this machine"),
            std::string::npos)
      << ran.out;
  EXPECT_EQ(ran.out.find("pip install nvidia-cuda-nvrtc); docs"), std::string::npos) << "one advice: " << ran.out;
}

}  // namespace
}  // namespace kiln::test
