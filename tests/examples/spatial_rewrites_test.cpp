// SPDX-License-Identifier: Apache-2.0
// The rewrites of examples/spatial: the same result with and without, and an event only with.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "support/fixtures/geos_oracle.hpp"
#include "support/processes/scoped_env.hpp"

namespace kiln::test {
namespace {

class SpatialRewrites : public testing::Test {
 protected:
  runtime::Runtime make() {
    runtime::RuntimeOptions options;
    options.mode = runtime::Mode::Cpu;
    SessionOptions settings;
    settings.on_event = [this](const Event& event) {
      const std::lock_guard lock(mutex_);
      if (event.is(runtime::events::kRewritten)) rewritten_.push_back(event);
    };
    return runtime::Runtime(Session::open(std::move(settings)).value(), options);
  }
  /// Runs the operations on all sets of a kind and returns the rewrites, as "requested > selected: rule", each once.
  std::vector<std::string> rewrites(runtime::Runtime& runtime, Ground ground) {
    rewritten_.clear();
    for (std::uint64_t number = 0; number < kGeneratedSets; ++number) {
      if (static_cast<Ground>(number % kGrounds) == ground) expect_equal_to_geos(runtime, generated_set(number));
    }
    std::vector<std::string> texts;
    for (const Event& event : rewritten_) {
      texts.push_back(event.requested + " > " + event.selected + ": " + event.message);
    }
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    return texts;
  }

  std::mutex mutex_;
  std::vector<Event> rewritten_;  // guarded by mutex_ while operations run
  ScopedEnv variable_{"KILN_REWRITES", nullptr};
};

const std::vector<std::string> kAllRules = {"spatial.area > spatial.box_area: area of boxes",
                                            "spatial.sjoin > spatial.box_join: sjoin of boxes",
                                            "spatial.within > spatial.box_within: within of boxes"};

TEST_F(SpatialRewrites, EachRuleGivesResultsOfGeosAndEmitsEvent) {
  runtime::Runtime runtime = make();
  EXPECT_EQ(rewrites(runtime, Ground::Rectangles), kAllRules);
}

TEST_F(SpatialRewrites, ResultsAreThoseOfGeosWithoutRewrites) {
  runtime::Runtime runtime = make();
  runtime.set_rewrites(false);
  EXPECT_EQ(rewrites(runtime, Ground::Rectangles), std::vector<std::string>());
  variable_.set("no");
  runtime::Runtime other = make();
  EXPECT_EQ(rewrites(other, Ground::Rectangles), std::vector<std::string>());
  other.set_rewrites(true);
  EXPECT_EQ(rewrites(other, Ground::Rectangles), kAllRules) << "the program overrides the variable";
}

TEST_F(SpatialRewrites, OtherShapesAreNotRewritten) {
  spatial::PointColumn points;
  spatial::PolygonColumn polygons;
  points.add({0.25, 0.25});
  polygons.add_ring({{0, 0}, {1, 0}, {0, 1}, {0, 0}});
  polygons.end_row();
  runtime::Runtime runtime = make();
  EXPECT_EQ(spatial::area(runtime, polygons).value().host.values, std::vector<double>{0.5});
  EXPECT_TRUE(spatial::within(runtime, points, polygons).value().host.inside[0]);
  EXPECT_EQ(spatial::sjoin(runtime, points, polygons).value().host.size(), 1U);
  EXPECT_TRUE(rewritten_.empty());
}

TEST(SpatialRectangles, AreClosed) {
  const auto is_rectangle = [](spatial::Point last) {
    spatial::PolygonColumn polygons;
    polygons.add_ring({{0, 0}, {2, 0}, {2, 1}, {0, 1}, last});
    polygons.end_row();
    return all_rectangles(polygons);
  };
  EXPECT_TRUE(is_rectangle({0, 0}));
  EXPECT_FALSE(is_rectangle({0, 0.5}));
  EXPECT_FALSE(is_rectangle({1, 0}));
}

// Null is unknown, and empty has no area and no interior, with and without rewrites.
TEST_F(SpatialRewrites, NullAndEmptyRowsGiveTheSame) {
  spatial::PointColumn points;
  spatial::PolygonColumn polygons;
  const auto square = [&] { polygons.add_ring({{0, 0}, {2, 0}, {2, 3}, {0, 3}, {0, 0}}); };
  points.add({1, 1});
  polygons.add_null();
  points.add({1, 1});
  polygons.end_row();
  points.add_null();
  square();
  polygons.end_row();
  points.add_empty();
  square();
  polygons.end_row();
  points.add({2, 1});
  square();
  polygons.end_row();
  points.add({1, 1});
  square();
  polygons.end_row();
  runtime::Runtime runtime = make();
  for (const bool on : {true, false}) {
    runtime.set_rewrites(on);
    const spatial::Mask mask = spatial::within(runtime, points, polygons).value().host;
    EXPECT_EQ(mask.valid.words(), std::vector<std::uint32_t>{0b111010}) << on;
    EXPECT_EQ(mask.inside.words(), std::vector<std::uint32_t>{0b100000}) << on;
    const spatial::Areas areas = spatial::area(runtime, polygons).value().host;
    EXPECT_EQ(areas.valid.words(), std::vector<std::uint32_t>{0b111110}) << on;
    EXPECT_NE(areas.values[0], areas.values[0]) << on;
    EXPECT_EQ(std::vector<double>(areas.values.begin() + 1, areas.values.end()), (std::vector<double>{0, 6, 6, 6, 6}));
  }
  EXPECT_EQ(rewritten_.size(), 2U);
}

TEST_F(SpatialRewrites, AreaSubtractsHolesAndAddsParts) {
  spatial::PolygonColumn polygons;
  polygons.add_ring({{0, 0}, {10, 0}, {10, 10}, {0, 10}, {0, 0}});
  polygons.add_ring({{1, 1}, {3, 1}, {3, 3}, {1, 3}, {1, 1}});
  polygons.add_shell({{20, 0}, {20, 4}, {23, 0}, {20, 0}});
  polygons.end_row();
  runtime::Runtime runtime = make();
  EXPECT_EQ(spatial::area(runtime, polygons).value().host.values, std::vector<double>{100 - 4 + 6});
}

}  // namespace
}  // namespace kiln::test
