// SPDX-License-Identifier: Apache-2.0
// Mode auto on a machine with PoCL and no GPU. A separate program, because OpenCL must not have been opened before.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <kiln/runtime.hpp>
#include <kiln/runtime/calibration.hpp>

#include "spatial/operations.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

std::size_t threads() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

/// Returns a mapped library of OpenCL; empty if there is none.
std::string opencl_library() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libOpenCL") != std::string::npos || line.find("libpocl") != std::string::npos) return line;
  }
  return {};
}

TEST(SpatialAuto, OpensAndCompilesNothingForPoclWithoutPermission) {
  const TemporaryDirectory directory;
  // As if PoCL had been measured as faster from the first row on.
  runtime::Calibration calibration{runtime::this_processor(), {}};
  calibration.machine.devices[runtime::Backend::OpenCl] = "pthread";
  for (const char* operation : {"spatial.within", "spatial.sjoin"}) {
    runtime::OperationCalibration one;
    one.operation = operation;
    one.date = "2026-11-15T18:20:00Z";
    one.thresholds[runtime::Backend::OpenCl] = 1;
    calibration.operations.push_back(one);
  }
  const std::string file = directory.path("calibration.json");
  ASSERT_TRUE(calibration.write(file).has_value());

  std::size_t compiled = 0;
  SessionOptions settings;
  settings.settings["cache.dir"] = directory.path("cache");
  settings.on_event = [&](const Event& event) { compiled += event.kind == Event::Kind::Compiled; };
  const Session session = Session::open(std::move(settings)).value();
  runtime::RuntimeOptions options;
  options.calibration = file;
  runtime::Runtime runtime(session, options);
  spatial::PointColumn points;
  spatial::PolygonColumn polygons;
  for (int i = 0; i < 1000; ++i) points.add({i * 0.5, 0.25});
  polygons.add_ring({{0, 0}, {300, 0}, {0, 300}, {0, 0}});
  polygons.end_row();

  const std::size_t before = threads();
  spatial::open(runtime, points);
  spatial::open(runtime, polygons);
  EXPECT_EQ(threads(), before) << "no thread opens a driver or compiles";
  ASSERT_TRUE(spatial::within(runtime, points, polygons).has_value());
  ASSERT_TRUE(spatial::sjoin(runtime, points, polygons).has_value());
  EXPECT_EQ(opencl_library(), "");
  EXPECT_EQ(session.status().submitted, 0U);
  EXPECT_EQ(compiled, 0U);
  EXPECT_EQ(runtime.counts().on_device, 0U);
  EXPECT_EQ(runtime.counts().fallbacks, 2U) << "the decisions say why they did not use the measured device";

  runtime.set_allow_cpu_device(true);
  spatial::open(runtime, points);
  EXPECT_EQ(session.status().submitted, 1U) << "with permission the same call requests the unit";
}

}  // namespace
}  // namespace kiln::test
