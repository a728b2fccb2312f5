// SPDX-License-Identifier: Apache-2.0
// The events of a join of columns on a device. PoCL really executes it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <kiln/runtime.hpp>

#include "examples/spatial_device.hpp"
#include "spatial/device/device_column.hpp"
#include "spatial/operations.hpp"
#include "support/fixtures/geos_oracle.hpp"

namespace kiln::test {
namespace {

using Kind = Event::Kind;
using Events = std::vector<Event>;

std::size_t count(const Events& events, const std::function<bool(const Event&)>& which) {
  return static_cast<std::size_t>(std::count_if(events.begin(), events.end(), which));
}
std::size_t count(const Events& events, Kind kind) {
  return count(events, [kind](const Event& event) { return event.kind == kind; });
}
std::size_t count(const Events& events, const EventType& type) {
  return count(events, [&type](const Event& event) { return event.is(type); });
}
bool is_copy_out(const Event& event) { return event.kind == Kind::Copied && event.message == "from the device"; }
bool is_allocation(const Event& event) { return event.kind == Kind::Allocated && event.message == "allocated"; }

class SpatialResidency : public testing::Test {
 protected:
  struct Joined {
    Events events;  // from the call to its return
    std::shared_ptr<const spatial::DevicePairs> pairs;
  };
  Joined join(std::size_t points, std::size_t polygons) {
    GeneratedSet set = GeometryMaker(5, Ground::Uniform).set(points, polygons);
    const SetColumns columns = read_columns(GeosOracle(set));
    const auto device_points = upload(runtime_, kit_, columns.points).value();
    const auto device_polygons = upload(runtime_, kit_, columns.polygons).value();
    (void)SpatialSession::shared().take_events();
    auto placed = spatial::sjoin(runtime_, device_points, device_polygons).value();
    return {SpatialSession::shared().take_events(), placed.device};
  }

  runtime::Runtime runtime_ = SpatialSession::shared().runtime();
  const std::shared_ptr<spatial::DeviceContext> kit_ =
      spatial::DeviceContext::open(runtime_.session(), runtime::Backend::OpenCl).value();
};

TEST_F(SpatialResidency, JoinDecidesOnceAndReadsOneScalarPerAllocation) {
  const Joined joined = join(3'000, 200);
  ASSERT_NE(joined.pairs, nullptr);
  EXPECT_GT(joined.pairs->rows(), 0U);
  EXPECT_EQ(count(joined.events, runtime::events::kDecided), 1U);
  EXPECT_EQ(count(joined.events, runtime::events::kDispatched), 1U);
  EXPECT_EQ(count(joined.events, Kind::Synchronized), 0U);
  EXPECT_EQ(count(joined.events, runtime::events::kMaterialized), 0U);
  EXPECT_EQ(count(joined.events, is_copy_out), 3U) << "one each for the grid, the candidates and the pairs";
  for (auto event = joined.events.begin(); event != joined.events.end(); ++event) {
    if (event->kind == Kind::Copied) {
      EXPECT_TRUE(is_copy_out(*event)) << "nothing is copied to the device";
      EXPECT_EQ(event->bytes, 4U);
      EXPECT_EQ(event->context.purpose, Purpose::AllocationSize);
      const auto next = std::find_if(event + 1, joined.events.end(), [](const Event& later) {
        return is_allocation(later) || later.kind == Kind::Launched || later.kind == Kind::Copied;
      });
      ASSERT_NE(next, joined.events.end());
      EXPECT_TRUE(is_allocation(*next)) << "the scalar must size the next allocation";
    }
    if (event->kind != Kind::Launched) continue;
    EXPECT_EQ(event->context.operation, "spatial.sjoin");
    EXPECT_FALSE(event->context.stage.empty()) << event->message;
    EXPECT_EQ(event->context.residency, Residency::Device);
    EXPECT_EQ(event->block_threads, event->suggested_block_threads) << event->message;
  }
}

TEST_F(SpatialResidency, EveryStageOfJoinRunsOnDevice) {
  std::vector<std::string> stages;
  for (const Event& event : join(3'000, 200).events) {
    if (!event.is(runtime::events::kStageFinished)) continue;
    stages.push_back(event.context.stage);
    EXPECT_EQ(event.selected, "opencl") << event.context.stage;
  }
  EXPECT_EQ(stages, (std::vector<std::string>{"bounds", "index", "candidates", "refine", "compaction", "sort"}));
}

TEST_F(SpatialResidency, LaunchCountDependsOnRowBitsOnly) {
  // Both have 12 and 8 bits of row numbers.
  const std::size_t fewer = count(join(2'100, 130).events, Kind::Launched);
  const std::size_t more = count(join(4'000, 250).events, Kind::Launched);
  EXPECT_EQ(fewer, more);
  // Three passes of the sort with four launches each, and 16 before and after.
  EXPECT_EQ(more, 3U * 4 + 16);
}

TEST_F(SpatialResidency, MaterializeCopiesOnceAndEmitsEvent) {
  const Joined joined = join(500, 50);
  (void)SpatialSession::shared().take_events();
  const spatial::Pairs pairs = materialize(runtime_, *joined.pairs).value();
  EXPECT_EQ(pairs.size(), joined.pairs->rows());
  const Events events = SpatialSession::shared().take_events();
  ASSERT_EQ(count(events, is_copy_out), 1U);
  ASSERT_EQ(count(events, runtime::events::kMaterialized), 1U);
  for (const Event& event : events) {
    EXPECT_EQ(event.context.purpose, Purpose::Materialize);
    EXPECT_EQ(event.bytes, pairs.size() * sizeof(spatial::Pair));
  }
}

TEST_F(SpatialResidency, RejectsColumnsOfTwoKits) {
  const auto other = spatial::DeviceContext::open(runtime_.session(), runtime::Backend::OpenCl).value();
  spatial::PointColumn points;
  points.add({1, 1});
  spatial::PolygonColumn polygons;
  polygons.add_ring({{0, 0}, {4, 0}, {0, 4}, {0, 0}});
  polygons.end_row();
  const auto here = upload(runtime_, kit_, points).value();
  const auto there = upload(runtime_, other, polygons).value();
  const auto joined = spatial::sjoin(runtime_, here, there);
  ASSERT_FALSE(joined.has_value());
  EXPECT_EQ(joined.error().code, Code::InvalidArgument) << joined.error().message;
}

TEST_F(SpatialResidency, PointColumnRequestsNoPolygonUnits) {
  for (const Unit& of_points : spatial::opencl::point_column_requirements.units()) {
    for (const Unit& of_polygons : spatial::opencl::polygon_column_requirements.units()) {
      EXPECT_NE(of_points.name(), of_polygons.name());
    }
  }
}

}  // namespace
}  // namespace kiln::test
