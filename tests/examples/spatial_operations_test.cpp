// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "spatial/operations.hpp"
#include "spatial/predicates.hpp"
#include "support/fixtures/geos_oracle.hpp"

namespace spatial {
namespace {

/// Uses only the CPU and records the decisions.
class SpatialOperations : public testing::Test {
 protected:
  SpatialOperations() : runtime_(open(), options()) {}

  std::vector<std::string> operations_run() const {
    std::vector<std::string> names;
    for (const kiln::Event& event : events_) {
      if (event.is(kiln::runtime::events::kDispatched)) names.push_back(event.context.operation);
    }
    return names;
  }
  std::size_t rewrites() const {
    return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), [](const kiln::Event& event) {
      return event.is(kiln::runtime::events::kRewritten);
    }));
  }

  std::vector<kiln::Event> events_;  // all from this thread: nothing is compiled here
  runtime::Runtime runtime_;

 private:
  kiln::Session open() {
    kiln::SessionOptions options;
    options.on_event = [this](const kiln::Event& event) { events_.push_back(event); };
    return kiln::Session::open(std::move(options)).value();
  }
  static runtime::RuntimeOptions options() {
    runtime::RuntimeOptions options;
    options.mode = runtime::Mode::Cpu;
    return options;
  }
};

PolygonColumn squares(std::size_t count) {
  PolygonColumn column;
  for (std::size_t i = 0; i < count; ++i) {
    const double at = static_cast<double>(i);
    column.add_ring({{at, 0}, {at + 2, 0}, {at + 2, 2}, {at, 2}, {at, 0}});
    column.end_row();
  }
  return column;
}

TEST_F(SpatialOperations, JoinWithRectanglesIsRewrittenToBoxJoin) {
  PointColumn points;
  for (const Point point : {Point{1, 1}, Point{2, 1}, Point{2.5, 1}, Point{0.5, 2}}) points.add(point);
  const PolygonColumn polygons = squares(3);
  const Pairs boxes = sjoin(runtime_, points, polygons).value().host;
  EXPECT_EQ(boxes, (Pairs{{0, 0}, {1, 1}, {2, 1}, {2, 2}}));
  EXPECT_EQ(operations_run(), std::vector<std::string>{"spatial.box_join"});
  EXPECT_EQ(rewrites(), 1U);

  events_.clear();
  runtime_.set_rewrites(false);
  EXPECT_EQ(sjoin(runtime_, points, polygons).value().host, boxes);
  EXPECT_EQ(operations_run(), std::vector<std::string>{"spatial.sjoin"});
  EXPECT_EQ(rewrites(), 0U);
}

TEST_F(SpatialOperations, RewriteDoesNotChangeResult) {
  using namespace kiln::test;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const SetColumns columns = read_columns(GeosOracle(GeometryMaker(seed, Ground::Rectangles).set(50, 20)));
    runtime_.set_rewrites(true);
    const Pairs boxes = sjoin(runtime_, columns.points, columns.polygons).value().host;
    runtime_.set_rewrites(false);
    EXPECT_EQ(sjoin(runtime_, columns.points, columns.polygons).value().host, boxes) << seed;
  }
  EXPECT_EQ(rewrites(), 20U);
}

TEST_F(SpatialOperations, AcceptEmptyColumns) {
  const PointColumn no_points;
  const PolygonColumn no_polygons;
  EXPECT_EQ(bounds(runtime_, no_points).value().host.rows(), 0U);
  EXPECT_EQ(bounds(runtime_, no_polygons).value().host.rows(), 0U);
  EXPECT_EQ(within(runtime_, no_points, no_polygons).value().host.inside.size(), 0U);
  EXPECT_EQ(within(runtime_, no_points, squares(1)).value().host.inside.size(), 0U);
  EXPECT_EQ(sjoin(runtime_, no_points, squares(3)).value().host.size(), 0U);
  PointColumn points;
  points.add({1, 1});
  EXPECT_EQ(sjoin(runtime_, points, no_polygons).value().host.size(), 0U);
}

TEST_F(SpatialOperations, WithinTakesOnePolygonOrOnePerPoint) {
  PointColumn points;
  for (int i = 0; i < 3; ++i) points.add({1, 1});
  const kiln::Result<PlacedMask> rejected = within(runtime_, points, squares(2));
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, kiln::Code::InvalidArgument);
  EXPECT_NE(rejected.error().message.find("3 points and 2 polygons"), std::string::npos);
}

TEST_F(SpatialOperations, NullGivesNullAndEmptyGivesFalse) {
  PointColumn points;
  points.add_null();
  points.add_empty();
  points.add({1, 1});
  points.add({1, 1});
  PolygonColumn polygons = squares(2);
  polygons.add_null();
  polygons.end_row();
  const Mask rows = within(runtime_, points, polygons).value().host;
  EXPECT_EQ(rows.valid.words()[0], 0b1010U);
  EXPECT_EQ(rows.inside.words()[0], 0U);

  PolygonColumn null;
  null.add_null();
  EXPECT_EQ(within(runtime_, points, null).value().host.valid.count(), 0U);
  const Boxes boxes = bounds(runtime_, polygons).value().host;
  EXPECT_TRUE(boxes.null(2) && !boxes.empty(2));
  EXPECT_TRUE(boxes.empty(3) && !boxes.null(3));
}

/// Returns a comb: the bands of such a polygon have edges that span all bands.
PolygonColumn comb() {
  std::vector<Point> ring;
  for (int tooth = 0; tooth < 500; ++tooth) {
    ring.push_back({tooth * 2.0, 0});
    ring.push_back({tooth * 2.0 + 1, 1000});
  }
  ring.push_back({1000, -1});
  ring.push_back({0, -1});
  ring.push_back(ring.front());
  PolygonColumn column;
  column.add_ring(ring);
  column.end_row();
  return column;
}

TEST_F(SpatialOperations, PolygonWithManyEdgesIsExactForManyPoints) {
  PointColumn points;
  for (int i = 0; i < 2'000; ++i) points.add({i * 0.5, (i * 37 % 1000) * 1.0});
  const PolygonColumn polygons = comb();
  const Mask mask = within(runtime_, points, polygons).value().host;
  Pairs expected;
  for (std::size_t row = 0; row < points.rows(); ++row) {
    const bool in = inside(polygons, 0, points[row]);
    ASSERT_EQ(mask.inside[row], in) << row;
    if (in) expected.push_back({static_cast<std::int32_t>(row), 0});
  }
  EXPECT_GT(expected.size(), 500U);
  EXPECT_LT(expected.size(), 1'500U);
  EXPECT_EQ(sjoin(runtime_, points, polygons).value().host, expected);
}

}  // namespace
}  // namespace spatial
