// SPDX-License-Identifier: Apache-2.0
// `dissolve` and `to_wkb` on PoCL, which really executes them, compared with GEOS and with the CPU variants.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kiln/runtime.hpp>

#include "examples/spatial_device.hpp"
#include "spatial/device/device_column.hpp"
#include "spatial/operations.hpp"
#include "support/fixtures/coverage.hpp"

namespace kiln::test {
namespace {

using Kind = Event::Kind;
using Events = std::vector<Event>;

bool is_read(const Event& event) { return event.kind == Kind::Copied && event.message == "from the device"; }
bool is_allocated(const Event& event) { return event.kind == Kind::Allocated && event.message == "allocated"; }

class SpatialDissolveOnOpenCl : public testing::Test {
 protected:
  static runtime::RuntimeOptions on_cpu() {
    runtime::RuntimeOptions options;
    options.mode = runtime::Mode::Cpu;
    return options;
  }
  // Expects that every read is one scalar that sizes the next allocation, and that nothing is waited for otherwise.
  static void expect_only_sizes_read(const Events& events, std::size_t reads, const std::string& operation) {
    EXPECT_EQ(std::count_if(events.begin(), events.end(), is_read), static_cast<std::ptrdiff_t>(reads));
    for (auto event = events.begin(); event != events.end(); ++event) {
      EXPECT_NE(event->kind, Kind::Synchronized);
      EXPECT_FALSE(event->is(runtime::events::kMaterialized));
      if (event->kind == Kind::Copied) {
        EXPECT_TRUE(is_read(*event));
        EXPECT_EQ(event->bytes, 4U);
        EXPECT_EQ(event->context.purpose, Purpose::AllocationSize);
        const auto next = std::find_if(event + 1, events.end(), [](const Event& later) {
          return is_allocated(later) || later.kind == Kind::Launched || later.kind == Kind::Copied;
        });
        EXPECT_TRUE(next != events.end() && is_allocated(*next)) << "the scalar must size the next allocation";
      }
      if (event->kind != Kind::Launched) continue;
      EXPECT_EQ(event->context.operation, operation);
      EXPECT_FALSE(event->context.stage.empty()) << event->message;
    }
  }
  Events events_for_row_of(std::size_t squares, std::size_t distinct_keys) {
    spatial::PolygonColumn column;
    spatial::KeyColumn keys;
    for (std::size_t i = 0; i < squares; ++i) {
      const auto x = static_cast<double>(i);
      column.add_ring({{x, 0}, {x + 1, 0}, {x + 1, 1}, {x, 1}, {x, 0}});
      column.end_row();
      keys.values.push_back(static_cast<std::int32_t>(i % distinct_keys));
    }
    const auto polygons = upload(runtime_, kit_, column).value();
    const auto device_keys = upload(runtime_, kit_, keys).value();
    (void)SpatialSession::shared().take_events();
    EXPECT_TRUE(spatial::dissolve(runtime_, polygons, device_keys).has_value());
    Events events = SpatialSession::shared().take_events();
    events.erase(std::remove_if(events.begin(), events.end(), [](const Event& e) { return e.kind != Kind::Launched; }),
                 events.end());
    return events;
  }

  runtime::Runtime runtime_ = SpatialSession::shared().runtime();
  runtime::Runtime cpu_{SpatialSession::shared().session(), on_cpu()};
  const std::shared_ptr<spatial::DeviceContext> kit_ =
      spatial::DeviceContext::open(runtime_.session(), runtime::Backend::OpenCl).value();
};

TEST_F(SpatialDissolveOnOpenCl, EqualsGeosAndCpu) {
  for (std::uint64_t number = 0; number < kCoverages; ++number) {
    const CoverageSet set = coverage(number);
    const spatial::PolygonColumn polygons = polygons_of(set);
    const auto result = spatial::dissolve(runtime_, polygons, set.keys);
    ASSERT_TRUE(result.has_value()) << number << ": " << result.error().message;
    expect_union(result->host, set, std::to_string(number));
    expect_equal(result->host, spatial::dissolve(cpu_, polygons, set.keys).value().host, std::to_string(number));
    ASSERT_FALSE(HasFailure()) << number;
  }
  EXPECT_EQ(runtime_.counts().fallbacks, 0U);
}

TEST_F(SpatialDissolveOnOpenCl, LargeCoverageEqualsCpu) {
  const CoverageSet set = CoverageMaker(77).make(60, 60);
  const spatial::PolygonColumn polygons = polygons_of(set);
  const spatial::Dissolved expected = spatial::dissolve(cpu_, polygons, set.keys).value().host;
  EXPECT_GT(expected.polygons.shells.size(), 256U);
  expect_equal(spatial::dissolve(runtime_, polygons, set.keys).value().host, expected, "large");
}

TEST_F(SpatialDissolveOnOpenCl, StaysOnDeviceFromDissolveToWkb) {
  const CoverageSet set = coverage(40);
  const spatial::PolygonColumn column = polygons_of(set);
  const auto polygons = upload(runtime_, kit_, column).value();
  const auto keys = upload(runtime_, kit_, set.keys).value();
  (void)SpatialSession::shared().take_events();
  const auto dissolved = spatial::dissolve(runtime_, polygons, keys).value();
  const Events of_dissolve = SpatialSession::shared().take_events();
  ASSERT_NE(dissolved.device, nullptr);
  expect_only_sizes_read(of_dissolve, 3, "spatial.dissolve");
  std::vector<std::string> stages;
  for (const Event& event : of_dissolve) {
    if (event.is(runtime::events::kStageFinished)) stages.push_back(event.context.stage);
  }
  EXPECT_EQ(stages, (std::vector<std::string>{"groups", "edges", "link", "rings", "nest", "write"}));

  const auto wkb = spatial::to_wkb(runtime_, dissolved.device->polygons).value();
  ASSERT_NE(wkb.device, nullptr);
  expect_only_sizes_read(SpatialSession::shared().take_events(), 1, "spatial.wkb_of_polygons");
  const spatial::Dissolved expected = spatial::dissolve(cpu_, column, set.keys).value().host;
  expect_equal(materialize(runtime_, *dissolved.device).value(), expected, "on the device");
  EXPECT_EQ(materialize(runtime_, *wkb.device).value(), spatial::to_wkb(cpu_, expected.polygons).value().host);
}

TEST_F(SpatialDissolveOnOpenCl, WkbOfPointsStaysOnDevice) {
  const GeneratedSet set = GeometryMaker(5, Ground::Uniform).set(500, 2);
  const GeosOracle oracle(set);
  const auto points = upload(runtime_, kit_, read_columns(oracle).points).value();
  (void)SpatialSession::shared().take_events();
  const auto wkb = spatial::to_wkb(runtime_, points).value();
  expect_only_sizes_read(SpatialSession::shared().take_events(), 1, "spatial.wkb_of_points");
  ASSERT_NE(wkb.device, nullptr);
  expect_equal(materialize(runtime_, *wkb.device).value(), oracle.points_wkb(), "points");
}

TEST_F(SpatialDissolveOnOpenCl, LaunchCountDependsOnBitsOnly) {
  // Both have 7 or 8 bits of vertices and edges, and at most 7 of rings.
  EXPECT_EQ(events_for_row_of(20, 2).size(), events_for_row_of(50, 2).size());
}

// `kiln audit` reports a kernel with 16 launches of at most 8 blocks in one run (many_tiny_launches).
TEST_F(SpatialDissolveOnOpenCl, HasFewSmallLaunchesOfOneKernel) {
  for (const std::size_t squares : {6'000U, 17'000U, 40'000U}) {
    std::map<std::string, std::size_t> small;
    for (const Event& event : events_for_row_of(squares, squares)) {
      if (event.grid_blocks <= 8) ++small[event.message];
    }
    for (const auto& [kernel, launches] : small) EXPECT_LT(launches, 16U) << kernel << " for " << squares;
  }
}

TEST_F(SpatialDissolveOnOpenCl, AcceptsColumnsWithoutRowsRingsOrBoundary) {
  const spatial::Dissolved none =
      spatial::dissolve(runtime_, spatial::PolygonColumn(), spatial::KeyColumn()).value().host;
  EXPECT_EQ(none.polygons.rows(), 0U);
  EXPECT_EQ(spatial::to_wkb(runtime_, spatial::PolygonColumn()).value().host.rows(), 0U);
  spatial::PolygonColumn empty;
  empty.end_row();
  empty.add_null();
  const spatial::Dissolved rows = spatial::dissolve(runtime_, empty, spatial::KeyColumn{{5, -5}}).value().host;
  EXPECT_EQ(rows.keys.values, (std::vector<std::int32_t>{-5, 5}));
  EXPECT_TRUE(rows.polygons.null(0));
  EXPECT_TRUE(rows.polygons.empty(1));
  EXPECT_EQ(rows.polygons.rings, (std::vector<std::int32_t>{0, 0, 0}));
  spatial::PolygonColumn spike;  // an edge there and back
  spike.add_ring({{0, 0}, {1, 1}, {0, 0}, {0, 0}});
  spike.end_row();
  EXPECT_TRUE(spatial::dissolve(runtime_, spike, spatial::KeyColumn{{1}}).value().host.polygons.empty(0));
}

TEST_F(SpatialDissolveOnOpenCl, RejectsEdgesThatOccurTooOften) {
  spatial::PolygonColumn twice;
  for (int i = 0; i < 2; ++i) {
    twice.add_ring({{0, 0}, {1, 0}, {0, 1}, {0, 0}});
    twice.end_row();
  }
  const auto result = spatial::dissolve(runtime_, twice, spatial::KeyColumn{{1, 1}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, Code::InvalidArgument);
  EXPECT_NE(result.error().message.find("not a coverage"), std::string::npos) << result.error().message;
  EXPECT_TRUE(spatial::dissolve(runtime_, twice, spatial::KeyColumn{{1, 2}}).has_value()) << "keys are independent";
}

// All edges have one of four hashes. Comparing each with all others would take 100 times as long.
TEST_F(SpatialDissolveOnOpenCl, RejectsManyEqualPolygonsInTimeOfCoverage) {
  constexpr std::size_t kSquares = 20'000;
  const auto timed = [&](double width) {
    spatial::PolygonColumn column;
    for (std::size_t i = 0; i < kSquares; ++i) {
      const double x = width * static_cast<double>(i);
      column.add_ring({{x, 0}, {x + 1, 0}, {x + 1, 1}, {x, 1}, {x, 0}});
      column.end_row();
    }
    const spatial::KeyColumn keys{std::vector<std::int32_t>(kSquares)};
    const auto polygons = upload(runtime_, kit_, column).value();
    const auto device_keys = upload(runtime_, kit_, keys).value();
    const auto start = std::chrono::steady_clock::now();
    const auto result = spatial::dissolve(runtime_, polygons, device_keys);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    const auto expected = spatial::dissolve(cpu_, column, keys);
    EXPECT_EQ(result.has_value(), width != 0);
    EXPECT_EQ(expected.has_value(), width != 0);
    if (!result && !expected) {
      EXPECT_EQ(result.error().message, expected.error().message);
    }
    return time.count();
  };
  (void)timed(1);  // compiles
  const double coverage_seconds = timed(1);
  EXPECT_LT(timed(0), 5 * coverage_seconds + 0.5);
}

TEST_F(SpatialDissolveOnOpenCl, RejectsCoordinateThatIsNan) {
  for (const std::size_t vertex : {0U, 2U, 4U}) {
    for (const bool of_x : {true, false}) {
      spatial::PolygonColumn column;
      column.add_ring({{0, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 0}});
      column.end_row();
      (of_x ? column.x : column.y)[vertex] = spatial::kNotANumber;
      const auto result = spatial::dissolve(runtime_, column, spatial::KeyColumn{{1}});
      const auto expected = spatial::dissolve(cpu_, column, spatial::KeyColumn{{1}});
      ASSERT_FALSE(result.has_value() || expected.has_value()) << vertex;
      EXPECT_EQ(result.error().message, expected.error().message);
    }
  }
}

TEST_F(SpatialDissolveOnOpenCl, RejectsKeysElsewhere) {
  spatial::PolygonColumn column;
  column.add_null();
  const auto polygons = upload(runtime_, kit_, column).value();
  EXPECT_EQ(spatial::dissolve(runtime_, polygons, spatial::KeyColumn{{1}}).error().code, Code::InvalidArgument);
  const auto other = spatial::DeviceContext::open(runtime_.session(), runtime::Backend::OpenCl).value();
  const auto keys = upload(runtime_, other, spatial::KeyColumn{{1}}).value();
  EXPECT_EQ(spatial::dissolve(runtime_, polygons, keys).error().code, Code::InvalidArgument);
}

}  // namespace
}  // namespace kiln::test
