// SPDX-License-Identifier: Apache-2.0
// The units that the operations of examples/spatial request on PoCL, and that they use no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <kiln/runtime.hpp>

#include "examples/spatial_device.hpp"
#include "spatial/operations.hpp"

namespace kiln::test {
namespace {

using Names = std::vector<std::string>;

/// Returns a session without requests that shares the cache of the other sessions of this program.
Session fresh_session() {
  SessionOptions options;
  options.settings["cache.dir"] = SpatialSession::shared().cache_directory();
  options.locked = {"cache.dir"};
  options.record_undeclared = true;
  return Session::open(std::move(options)).value();
}

runtime::Runtime on_opencl(const Session& session) {
  runtime::RuntimeOptions options;
  options.mode = runtime::Mode::Gpu;
  options.devices = {runtime::Backend::OpenCl};
  options.allow_cpu_device = true;  // PoCL
  return runtime::Runtime(session, options);
}

void wait_until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Returns the names of the requested units. Equal units that two threads request at the same time are only identified
/// as equal when both are done.
Names units_of(const Session& session) {
  wait_until([&] { return session.status().pending == 0; });
  Names names;
  for (const UnitStatus& unit : session.status().units) names.push_back(unit.unit);
  std::sort(names.begin(), names.end());
  return names;
}

struct WarmColumns {
  spatial::PointColumn points;
  spatial::PolygonColumn triangles;
  spatial::PolygonColumn squares;
};

WarmColumns small_columns() {
  WarmColumns columns;
  for (int i = 0; i < 40; ++i) {
    const double at = i;
    columns.points.add({at + 0.5, 0.25});
    columns.triangles.add_ring({{at, 0}, {at + 2, 0}, {at, 2}, {at, 0}});
    columns.triangles.end_row();
    columns.squares.add_ring({{at, 0}, {at + 1, 0}, {at + 1, 1}, {at, 1}, {at, 0}});
    columns.squares.end_row();
  }
  return columns;
}

void expect_exactly(const std::string& what, const Names& units,
                    const std::function<bool(runtime::Runtime&, const WarmColumns&)>& run) {
  const Session session = fresh_session();
  runtime::Runtime runtime = on_opencl(session);
  EXPECT_TRUE(run(runtime, small_columns())) << what;
  EXPECT_EQ(units_of(session), units) << what;
  for (const UndeclaredUse& use : session.undeclared()) {
    ADD_FAILURE() << what << " uses " << use.entry << " of " << use.unit << ", which it did not declare";
  }
}

TEST(SpatialRequests, EachOperationRequestsAndUsesOnlyItsUnits) {
  expect_exactly("bounds of points", {"point_bounds.cl"}, [](runtime::Runtime& runtime, const WarmColumns& columns) {
    return spatial::bounds(runtime, columns.points).has_value();
  });
  expect_exactly("bounds of polygons", {"polygon_bounds.cl"},
                 [](runtime::Runtime& runtime, const WarmColumns& columns) {
                   return spatial::bounds(runtime, columns.triangles).has_value();
                 });
  expect_exactly("within", {"compact.cl", "polygon_bounds.cl", "within.cl"},
                 [](runtime::Runtime& runtime, const WarmColumns& columns) {
                   spatial::PolygonColumn one;
                   one.add_ring({{0, 0}, {20, 0}, {0, 20}, {0, 0}});
                   one.end_row();
                   return spatial::within(runtime, columns.points, columns.triangles).has_value() &&
                          spatial::within(runtime, columns.points, one).has_value();
                 });
  expect_exactly("sjoin",
                 {"candidates.cl", "compact.cl", "grid.cl", "pairs.cl", "polygon_bounds.cl", "radix_sort.cl",
                  "refine.cl", "scan.cl"},
                 [](runtime::Runtime& runtime, const WarmColumns& columns) {
                   return spatial::sjoin(runtime, columns.points, columns.triangles).has_value();
                 });
  expect_exactly("box_join", {"candidates.cl", "grid.cl", "pairs.cl", "polygon_bounds.cl", "radix_sort.cl", "scan.cl"},
                 [](runtime::Runtime& runtime, const WarmColumns& columns) {
                   return spatial::sjoin(runtime, columns.points, columns.squares).has_value();
                 });
  expect_exactly("box_within", {"box_within.cl", "polygon_bounds.cl"},
                 [](runtime::Runtime& runtime, const WarmColumns& columns) {
                   return spatial::within(runtime, columns.points, columns.squares).has_value();
                 });
  expect_exactly("area", {"area_fp64.cl"}, [](runtime::Runtime& runtime, const WarmColumns& columns) {
    return spatial::area(runtime, columns.triangles).has_value();
  });
  expect_exactly("box_area", {"box_area.cl"}, [](runtime::Runtime& runtime, const WarmColumns& columns) {
    return spatial::area(runtime, columns.squares).has_value();
  });
  expect_exactly("WKB of points", {"scan.cl", "wkb_points.cl"},
                 [](runtime::Runtime& runtime, const WarmColumns& columns) {
                   return spatial::to_wkb(runtime, columns.points).has_value();
                 });
  expect_exactly("WKB of polygons", {"scan.cl", "wkb_polygons.cl"},
                 [](runtime::Runtime& runtime, const WarmColumns& columns) {
                   return spatial::to_wkb(runtime, columns.triangles).has_value();
                 });
  expect_exactly("dissolve",
                 {"compact.cl", "edges.cl", "groups.cl", "links.cl", "parts.cl", "radix_sort.cl", "scan.cl",
                  "segmented_reduce.cl", "unique.cl"},
                 [](runtime::Runtime& runtime, const WarmColumns& columns) {
                   const spatial::KeyColumn keys{std::vector<std::int32_t>(columns.squares.rows(), 1)};
                   return spatial::dissolve(runtime, columns.squares, keys).has_value();
                 });
}

TEST(SpatialRequests, OpeningColumnRequestsOnlyUnitsOfItsType) {
  const Session session = fresh_session();
  runtime::Runtime runtime = on_opencl(session);
  const WarmColumns columns = small_columns();
  spatial::open(runtime, columns.points);
  ASSERT_TRUE(spatial::bounds(runtime, columns.points).has_value());  // all earlier requests are in the list now
  EXPECT_EQ(units_of(session), Names{"point_bounds.cl"});
  spatial::open(runtime, columns.triangles);
  ASSERT_TRUE(spatial::bounds(runtime, columns.triangles).has_value());
  EXPECT_EQ(units_of(session), (Names{"point_bounds.cl", "polygon_bounds.cl"}));
  EXPECT_TRUE(session.undeclared().empty());
}

TEST(SpatialRequests, OpeningColumnRequestsItsUnits) {
  const Session session = fresh_session();
  runtime::Runtime runtime = on_opencl(session);
  spatial::open(runtime, small_columns().triangles);
  wait_until([&] { return session.status().submitted > 0; });  // on another thread
  EXPECT_EQ(units_of(session), Names{"polygon_bounds.cl"});
}

TEST(SpatialRequests, CpuModeCompilesNothing) {
  const Session session = fresh_session();
  runtime::Runtime runtime = on_opencl(session);
  runtime.set_mode(runtime::Mode::Cpu);
  const WarmColumns columns = small_columns();
  spatial::open(runtime, columns.points);
  spatial::open(runtime, columns.triangles);
  ASSERT_TRUE(spatial::sjoin(runtime, columns.points, columns.triangles).has_value());
  EXPECT_EQ(units_of(session), Names{});
}

}  // namespace
}  // namespace kiln::test
