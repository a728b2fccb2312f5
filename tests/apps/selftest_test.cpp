// SPDX-License-Identifier: Apache-2.0
// `kiln selftest` on PoCL, which executes device code, and on the fake driver, which executes none.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "apps/run_kiln.hpp"
#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

using Variables = std::map<std::string, std::string>;

class SelftestProgram : public KilnProgram {
 protected:
  // Without any device.
  Variables no_device() const {
    return {{"KILN_DRIVER", path("no-driver.so")},
            {"OCL_ICD_VENDORS", path("nowhere")},
            {"OPENCL_VENDOR_PATH", path("nowhere")}};
  }
  static void expect_states(const nlohmann::json& backend, const std::string& skipped) {
    for (const nlohmann::json& check : backend["checks"]) {
      EXPECT_EQ(check["state"], check["name"] == skipped ? "skipped" : "passed") << check;
      EXPECT_FALSE(check.value("text", "").empty()) << check;
    }
  }
};

TEST_F(SelftestProgram, RunsEveryCheckAndSaysWhatRanForReal) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  // Settings of the user do not matter, and neither does a cache of the user.
  const Variables variables = {{"KILN_DRIVER", FakeCudaDriver::path()}, {"KILN_FAKE_DRIVER_DEVICES", "sm_80"},
                               {"KILN_NVRTC", toolkit_nvrtc()},         {"KILN_COMPILE", "never"},
                               {"KILN_REMOTE", path("remote")},         {"KILN_TRACE", path("trace.json")}};
  const Ran ran = run({"selftest", "--quick", "-o", "report", "--json"}, variables);
  ASSERT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  const nlohmann::json json = ran.json();
  ASSERT_TRUE(json.is_object()) << ran.out;
  EXPECT_EQ(json, nlohmann::json::parse(read_text(path("report/report.json"))));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["kind"], "kiln-selftest");
  EXPECT_EQ(json["failed"], 0);
  ASSERT_EQ(json["backends"].size(), 2U);

  const nlohmann::json& cuda = json["backends"][0];
  EXPECT_EQ(cuda["executed"], false);
  EXPECT_EQ(cuda["driver_replaced"], true);
  EXPECT_EQ(cuda["evidence"].get<std::string>().rfind("Host calls only", 0), 0U) << cuda["evidence"];
  expect_states(cuda, "cccl");
  EXPECT_EQ(cuda["checks"].size(), 13U);
  const nlohmann::json& opencl = json["backends"][1];
  EXPECT_EQ(opencl["executed"], true);
  EXPECT_EQ(opencl["evidence"], "Device code was executed, on a CPU device.");
  expect_states(opencl, "");

  const std::string page = read_text(path("report/report.html"));
  EXPECT_NE(page.find("Row for the support matrix"), std::string::npos);
  EXPECT_EQ(page.find(root_), std::string::npos) << "the page names the directory of the user";
  EXPECT_FALSE(std::filesystem::exists(path("report/work"))) << "the files of the checks are left";
  for (const char* name : {"home", "cache", "remote", "trace.json"}) {
    EXPECT_FALSE(std::filesystem::exists(path(name))) << name << " was written outside of the directory";
  }
  std::printf("figure: kiln selftest --quick: %d passed, %d skipped in %.1f s\n", json["passed"].get<int>(),
              json["skipped"].get<int>(), json["seconds"].get<double>());
}

TEST_F(SelftestProgram, WithoutDeviceSkipsEveryCheckWithReason) {
  const Ran ran = run({"selftest", "-o", "report", "--json"}, no_device());
  EXPECT_EQ(ran.exit_code, 3) << ran.out << ran.err;
  const nlohmann::json json = ran.json();
  ASSERT_TRUE(json.is_object()) << ran.out;
  EXPECT_EQ(json["passed"], 0);
  for (const nlohmann::json& backend : json["backends"]) {
    EXPECT_EQ(backend["tested"], false);
    for (const nlohmann::json& check : backend["checks"]) {
      EXPECT_EQ(check["state"], "skipped");
      EXPECT_FALSE(check.value("text", "").empty());
    }
  }
}

TEST_F(SelftestProgram, DriverThatCrashesAtItsFirstCallIsAFailure) {
  Variables variables = no_device();
  variables["KILN_DRIVER"] = FakeCudaDriver::path();
  variables["KILN_FAKE_DRIVER_KERNELS"] = path("nowhere.so");  // the fake driver aborts
  const Ran ran = run({"selftest", "-o", "report", "--json"}, variables);
  EXPECT_EQ(ran.exit_code, 1) << ran.out << ran.err;
  const nlohmann::json json = ran.json();
  ASSERT_TRUE(json.is_object()) << ran.out;
  EXPECT_EQ(json["failed"], 1);
  const nlohmann::json& cuda = json["backends"][0];
  EXPECT_EQ(cuda["tested"], true);
  EXPECT_EQ(cuda["executed"], false);
  EXPECT_EQ(cuda["evidence"], "Nothing was executed: the driver crashed or did not answer.");
  EXPECT_TRUE(cuda["support_matrix_row"].is_null()) << cuda;
  EXPECT_EQ(cuda["checks"][0]["name"], "describe");
  EXPECT_EQ(cuda["checks"][0]["state"], "failed");
  EXPECT_NE(cuda["checks"][0]["text"].get<std::string>().find("signal 6"), std::string::npos) << cuda["checks"][0];
  for (std::size_t i = 1; i < cuda["checks"].size(); ++i) EXPECT_EQ(cuda["checks"][i]["state"], "skipped") << i;
  EXPECT_EQ(json["backends"][1]["tested"], false) << "a backend without a driver is still absent";
  EXPECT_NE(read_text(path("report/report.html")).find("describe"), std::string::npos);
  const Ran text = run({"selftest", "-o", "again"}, variables);
  EXPECT_EQ(text.exit_code, 1) << text.out;
  EXPECT_NE(text.out.find("cuda: the driver did not describe its devices"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("cuda: not tested"), std::string::npos) << text.out;
}

TEST_F(SelftestProgram, KeepsExistingDirectory) {
  write("report/notes.txt", "mine");
  const Ran ran = run({"selftest", "-o", "report"}, no_device());
  EXPECT_EQ(ran.exit_code, 2) << ran.err;
  EXPECT_TRUE(ran.says("report exists; remove it, or name another directory")) << ran.err;
  EXPECT_EQ(read_text(path("report/notes.txt")), "mine");
}

TEST_F(SelftestProgram, PrintsReasonForEachBackendWithoutDevice) {
  const Ran ran = run({"selftest"}, no_device());
  EXPECT_EQ(ran.exit_code, 3) << ran.err;
  EXPECT_NE(ran.out.find("cuda: not tested: "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("opencl: not tested: "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("attach report.html and report.json to an issue"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace kiln::test
