// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "examples/examples.hpp"

namespace kiln::test {
namespace {

class SpatialProgram : public Examples {
 protected:
  Ran spatial(std::vector<std::string> arguments, const Variables& variables = {}) {
    arguments.insert(arguments.begin(), KILN_SPATIAL);
    return run_program(arguments, variables);
  }
  /// Returns the JSON that `spatial demo … --json` printed in a run that must succeed.
  nlohmann::json demo(std::vector<std::string> arguments, const Variables& variables = {}) {
    arguments.insert(arguments.begin(), "demo");
    arguments.emplace_back("--json");
    const Ran ran = spatial(arguments, variables);
    EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
    const nlohmann::json json = ran.json();
    if (!json.is_object()) ADD_FAILURE() << "not JSON: " << ran.out << ran.err;
    return json.is_object() ? json : nlohmann::json::object();
  }
};

TEST_F(SpatialProgram, FirstWithinCompilesItsUnitsAndSecondProcessNone) {
  const std::vector<std::string> within = {"--operation", "within", "--points", "500", "--polygons", "4"};
  const auto on = [&within](const char* backend) {
    std::vector<std::string> arguments = within;
    arguments.insert(arguments.end(), {"--backend", backend});
    return arguments;
  };
  const Variables allowed = {{"KILN_ALLOW_CPU_DEVICE", "1"}};  // PoCL
  std::vector<std::string> traced = on("opencl");
  traced.insert(traced.end(), {"--trace", path("cold.json")});
  nlohmann::json cold = demo(traced, allowed);
  expect_no_run_waits_for_compiler(path("cold.json"));
  std::sort(cold["compiled"].begin(), cold["compiled"].end());
  EXPECT_EQ(cold["compiled"], (nlohmann::json{"compact.cl", "polygon_bounds.cl", "within.cl"})) << cold;
  EXPECT_EQ(cold["undeclared"], nlohmann::json::array());
  EXPECT_EQ(cold["requested"], "gpu");
  EXPECT_EQ(cold["selected"], "opencl");
  EXPECT_EQ(cold["cpu_device"], true);

  traced.back() = path("warm.json");
  const nlohmann::json warm = demo(traced, allowed);
  expect_clean_audit(path("warm.json"));
  EXPECT_EQ(warm["compiled"], nlohmann::json::array()) << warm;
  const nlohmann::json processor = demo(on("cpu"));
  EXPECT_GT(processor.value("pairs", 0), 0);
  EXPECT_EQ(warm["digest"], processor["digest"]);
  EXPECT_EQ(cold["digest"], processor["digest"]);
}

TEST_F(SpatialProgram, DemoReportsResultAndBackend) {
  const nlohmann::json processor = demo({"--points", "5000", "--polygons", "100", "--backend", "cpu"});
  EXPECT_GT(processor.value("pairs", 0), 1'000);
  EXPECT_EQ(processor["requested"], "cpu");
  EXPECT_EQ(processor["selected"], "cpu");
  EXPECT_EQ(processor["reason"], "requested");
  const nlohmann::json any = demo({"--points", "5000", "--polygons", "100"});
  EXPECT_EQ(any["requested"], "auto");
  EXPECT_EQ(any["selected"], "cpu") << "a device does not pay off for so few rows";
  EXPECT_EQ(any["digest"], processor["digest"]);
  const nlohmann::json other = demo({"--points", "5000", "--polygons", "100", "--seed", "2"});
  EXPECT_NE(other["digest"], processor["digest"]);
  const nlohmann::json asked = demo({"--points", "50", "--polygons", "1"}, {{"KILN_EXECUTION_MODE", "cpu"}});
  EXPECT_EQ(asked["requested"], "cpu");

  const Ran text = spatial({"demo", "--points", "5000", "--polygons", "100", "--backend", "cpu"});
  EXPECT_NE(text.out.find("sjoin of 5000 points and 100 polygons"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(std::string(processor["digest"])), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("requested cpu, selected cpu"), std::string::npos) << text.out;
}

TEST_F(SpatialProgram, DemoAcceptsZeroRows) {
  EXPECT_EQ(demo({"--points", "0", "--polygons", "5", "--backend", "cpu"})["pairs"], 0);
  EXPECT_EQ(demo({"--points", "5", "--polygons", "0", "--backend", "cpu"})["pairs"], 0);
}

TEST_F(SpatialProgram, DemoReportsMissingDevice) {
  const Ran ran = spatial({"demo", "--backend", "opencl", "--points", "10", "--polygons", "1"},
                          {{"OCL_ICD_VENDORS", path("nowhere")}, {"OPENCL_VENDOR_PATH", path("nowhere")}});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_TRUE(ran.says("spatial: ")) << ran.err;
  EXPECT_TRUE(ran.says("OpenCL")) << ran.err;
}

TEST_F(SpatialProgram, DemoRejectsCpuDeviceWithoutPermission) {
  const Ran ran = spatial({"demo", "--backend", "opencl", "--points", "10", "--polygons", "1"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_TRUE(ran.says("is a CPU; set KILN_ALLOW_CPU_DEVICE=1 to use it")) << ran.err;
  EXPECT_FALSE(ran.says("the rows of")) << "nothing is uploaded before: " << ran.err;
}

TEST_F(SpatialProgram, DemoPrintsWarningsOfSettings) {
  const Ran ran =
      spatial({"demo", "--points", "10", "--polygons", "1", "--backend", "cpu"}, {{"KILN_REWRITES", "perhaps"}});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_TRUE(ran.says("spatial: warning: KILN_REWRITES is ignored: invalid value 'perhaps'")) << ran.err;
}

TEST_F(SpatialProgram, DemoDissolvesAndWritesWkb) {
  const nlohmann::json wkb = demo({"--operation", "to_wkb", "--polygons", "20", "--backend", "cpu"});
  EXPECT_GT(wkb.value("bytes", 0), 20 * 9 * 16) << wkb;
  const nlohmann::json merged = demo({"--operation", "dissolve", "--polygons", "400", "--backend", "cpu"});
  EXPECT_GT(merged.value("bytes", 0), 26 * 9) << merged;
  EXPECT_EQ(merged.value("polygons", 0), 400);
  EXPECT_EQ(merged["digest"], demo({"--operation", "dissolve", "--polygons", "400", "--backend", "cpu"})["digest"]);
}

TEST_F(SpatialProgram, DemoWritesTrace) {
  ASSERT_EQ(spatial({"demo", "--points", "1000", "--polygons", "10", "--backend", "cpu", "--trace", path("trace.json")})
                .exit_code,
            0);
  std::ifstream file(path("trace.json"));
  const nlohmann::json trace = nlohmann::json::parse(file, nullptr, false);
  ASSERT_TRUE(trace.is_object());
  std::size_t decisions = 0;
  std::size_t stages = 0;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    decisions += event.value("cat", "") == "decided";
    stages += event.value("cat", "") == "stage_finished";
  }
  EXPECT_EQ(decisions, 1U);
  EXPECT_EQ(stages, 5U) << "prepare, bounds, index, refine, collect";
}

TEST_F(SpatialProgram, PlotWritesValidXml) {
  const Ran ran = spatial({"plot", "-o", path("out.svg"), "--points", "300", "--polygons", "12"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  std::ifstream file(path("out.svg"));
  const std::string svg{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(svg.rfind("<svg ", 0), 0U);
  EXPECT_NE(svg.find("fill-rule=\"evenodd\""), std::string::npos) << "holes are visible";
  EXPECT_NE(svg.find("pairs of point and polygon"), std::string::npos);
  EXPECT_LT(svg.size(), 30'000U);
  const Ran parsed = run_program({"/usr/bin/env", "python3", "-c",
                                  "import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])", path("out.svg")});
  EXPECT_EQ(parsed.exit_code, 0) << parsed.err;
  EXPECT_EQ(spatial({"plot", "-o", "-", "--points", "300", "--polygons", "12"}).out, svg);
  EXPECT_EQ(spatial({"plot", "-o", path("no/such/folder/out.svg")}).exit_code, 2);
}

TEST_F(SpatialProgram, PrintsUsage) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{},
                                             {"join"},
                                             {"demo", "--backend", "metal"},
                                             {"demo", "--points", "-1"},
                                             {"demo", "--points", "99999999999"},
                                             {"plot", "--points", "many"}}) {
    const Ran ran = spatial(wrong);
    EXPECT_EQ(ran.exit_code, 2) << ran.out << ran.err;
    EXPECT_TRUE(ran.says("--help")) << ran.err;
  }
  EXPECT_EQ(spatial({"--help"}).exit_code, 0);
}

}  // namespace
}  // namespace kiln::test
