// The CUDA variants of examples/spatial: units that NVRTC really compiles, driven through the driver double, which runs
// in the place of each kernel what the host's compiler made of the same file. No GPU has a part in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "examples/spatial_cuda.hpp"
#include "support/files.hpp"
#include "support/geos_oracle.hpp"

namespace kiln::test {
namespace {

using Kind = Event::Kind;

bool copies_out(const Event& event) { return event.kind == Kind::Copied && event.message == "from the device"; }
bool allocates(const Event& event) { return event.kind == Kind::Allocated && event.message == "allocated"; }
std::size_t number_of(const std::vector<Event>& events, Kind kind) {
  return static_cast<std::size_t>(
      std::count_if(events.begin(), events.end(), [kind](const Event& event) { return event.kind == kind; }));
}

class SpatialOnCuda : public SpatialCuda {
 protected:
  struct Resident {
    spatial::DevicePoints points;
    spatial::DevicePolygons polygons;
  };
  Resident uploaded(const SetColumns& columns) {
    return {upload(*runtime_, kit_, columns.points).value(), upload(*runtime_, kit_, columns.polygons).value()};
  }
  static SetColumns columns_of(std::size_t points, std::size_t polygons) {
    const GeneratedSet set = GeometryMaker(5, Ground::Uniform).set(points, polygons);
    return read_columns(GeosOracle(set));
  }
  // Every operation on columns that are on the device, and what GEOS says.
  void expect_equal_to_geos_there(const GeneratedSet& set) {
    const GeosOracle oracle(set);
    const SetColumns columns = read_columns(oracle);
    const std::size_t rows = std::min(columns.points.rows(), columns.polygons.rows());
    const Resident all = uploaded(columns);
    const Resident first = uploaded({rows_of(columns.points, 0, rows), rows_of(columns.polygons, 0, rows)});
    const auto of_points = spatial::bounds(*runtime_, all.points).value();
    const auto of_polygons = spatial::bounds(*runtime_, all.polygons).value();
    const auto mask = spatial::within(*runtime_, first.points, first.polygons).value();
    const auto pairs = spatial::sjoin(*runtime_, all.points, all.polygons).value();
    expect_equal(materialise(*runtime_, *of_points.device).value(), oracle.bounds_of_points(), set.name + ", points");
    expect_equal(materialise(*runtime_, *of_polygons.device).value(), oracle.bounds_of_polygons(),
                 set.name + ", polygons");
    expect_equal(materialise(*runtime_, *mask.device).value(), oracle.within_rows(), set.name + ", within");
    expect_equal(materialise(*runtime_, *pairs.device).value(), oracle.pairs(), set.name + ", sjoin");
    const Resident one = uploaded({columns.points, rows_of(columns.polygons, 0, 1)});
    const auto of_one = spatial::within(*runtime_, one.points, one.polygons).value();
    expect_equal(materialise(*runtime_, *of_one.device).value(), oracle.within_one(0), set.name + ", within one");
  }
};

TEST_F(SpatialOnCuda, EveryOperationEqualsGeosOnEveryGeneratedSet) {
  for (std::uint64_t number = 0; number < kGeneratedSets; ++number) {
    expect_equal_to_geos_there(generated_set(number));
    ASSERT_FALSE(HasFatalFailure()) << number;
  }
  EXPECT_EQ(runtime_->counts().on_device, 5 * kGeneratedSets - 4)
      << "one set has no points, and launches nothing for them";
  EXPECT_EQ(runtime_->counts().fallbacks, 0U);
}

TEST_F(SpatialOnCuda, AJoinIsDecidedOnceWaitsForNothingAndReadsOneScalarForAnAllocation) {
  const SetColumns columns = columns_of(3'000, 200);
  const Resident there = uploaded(columns);
  (void)take_events();
  const std::size_t waits = driver_.calls("cuStreamSynchronize");
  const auto pairs = spatial::sjoin(*runtime_, there.points, there.polygons).value();
  const std::vector<Event> events = take_events();
  ASSERT_NE(pairs.device, nullptr);
  EXPECT_EQ(number_of(events, Kind::Decided), 1U);
  EXPECT_EQ(number_of(events, Kind::Dispatched), 1U);
  EXPECT_EQ(number_of(events, Kind::Synchronised), 0U);
  EXPECT_EQ(std::count_if(events.begin(), events.end(), copies_out), 3);
  EXPECT_EQ(driver_.calls("cuStreamSynchronize") - waits, 3U) << "each scalar is waited for, and nothing else is";
  for (auto event = events.begin(); event != events.end(); ++event) {
    if (event->kind == Kind::Copied) {
      EXPECT_TRUE(copies_out(*event));
      EXPECT_EQ(event->bytes, 4U);
      EXPECT_EQ(event->work.purpose, Purpose::Size);
      const auto next = std::find_if(event + 1, events.end(), [](const Event& later) {
        return allocates(later) || later.kind == Kind::Launched || later.kind == Kind::Copied;
      });
      EXPECT_TRUE(next != events.end() && allocates(*next)) << "what was read sizes what is allocated next";
    }
    if (event->kind != Kind::Launched) continue;
    EXPECT_EQ(event->block, event->advised) << event->message;
  }
}

TEST_F(SpatialOnCuda, TheLaunchesOfAJoinComeInTheOrderOfItsStagesAndCoverTheirRows) {
  constexpr std::size_t kPoints = 3'000;
  constexpr std::size_t kPolygons = 200;
  constexpr std::size_t kCells = 1024 + 256 + 64 + 16 + 4 + 1;  // of the grids over 200 polygons
  const Resident there = uploaded(columns_of(kPoints, kPolygons));
  const std::size_t before = driver_.launches().size();
  const auto pairs = spatial::sjoin(*runtime_, there.points, there.polygons).value();
  auto launches = driver_.launches();
  launches.erase(launches.begin(), launches.begin() + static_cast<std::ptrdiff_t>(before));
  std::size_t candidates = 0;
  for (const auto& launch : launches) {
    if (launch.kernel == "refine_candidates") candidates = launch.argument<unsigned>(0);
  }
  const std::size_t found = pairs.device->rows();
  EXPECT_GT(candidates, found);
  const std::vector<std::pair<std::string, std::size_t>> expected = {{"polygon_bounds", kPolygons},
                                                                     {"grid_begin", kCells},
                                                                     {"grid_count", kPolygons},
                                                                     {"stand_in_scan", kCells + 1},
                                                                     {"scan_total", 1},
                                                                     {"grid_fill", kPolygons},
                                                                     {"candidates_count", kPoints},
                                                                     {"stand_in_scan", kPoints + 1},
                                                                     {"scan_total", 1},
                                                                     {"candidates_write", kPoints},
                                                                     {"refine_candidates", candidates},
                                                                     {"compact_numbers", candidates},
                                                                     {"stand_in_select", candidates},
                                                                     {"compact_indices", candidates},
                                                                     {"gather_keys", found},
                                                                     {"stand_in_sort", found},
                                                                     {"pairs_of_keys", found}};
  ASSERT_EQ(launches.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(launches[i].kernel, expected[i].first) << i;
    EXPECT_EQ(launches[i].grid[0], (expected[i].second - 1) / launches[i].block[0] + 1) << launches[i].kernel;
    EXPECT_EQ(launches[i].block[0] % 32, 0U);
    EXPECT_EQ(launches[i].stream, launches[0].stream);
  }
}

TEST_F(SpatialOnCuda, WithinAndBoundsReadNothingBackAndAreAFewLaunches) {
  const SetColumns columns = columns_of(300, 300);
  const Resident there = uploaded(columns);
  (void)take_events();
  const std::size_t before = driver_.launches().size();
  ASSERT_TRUE(spatial::within(*runtime_, there.points, there.polygons).ok());
  ASSERT_TRUE(spatial::bounds(*runtime_, there.points).ok());
  ASSERT_TRUE(spatial::bounds(*runtime_, there.polygons).ok());
  const std::vector<Event> events = take_events();
  EXPECT_EQ(number_of(events, Kind::Decided), 3U);
  EXPECT_EQ(number_of(events, Kind::Copied), 0U);
  EXPECT_EQ(number_of(events, Kind::Synchronised), 0U);
  std::vector<std::string> names;
  for (const auto& launch : driver_.launches()) names.push_back(launch.kernel);
  names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(before));
  EXPECT_EQ(names, (std::vector<std::string>{"polygon_bounds", "within_filter", "compact_numbers", "stand_in_select",
                                             "compact_indices", "within_refine", "point_bounds", "polygon_bounds"}));
}

TEST_F(SpatialOnCuda, EachOperationUsesWhatItNeedsAndNothingElse) {
  const SetColumns columns = columns_of(300, 300);
  spatial::PolygonColumn rectangle;
  rectangle.add_ring({{0, 0}, {0.5, 0}, {0.5, 0.5}, {0, 0.5}, {0, 0}});
  rectangle.end_row();
  struct Case {
    const Needs* needs;
    std::function<bool(const Resident&)> run;
  };
  const auto join = [&](const Resident& on) { return spatial::sjoin(*runtime_, on.points, on.polygons).ok(); };
  const Case cases[] = {
      {&spatial::cuda::bounds_of_points_needs,
       [&](const Resident& on) { return spatial::bounds(*runtime_, on.points).ok(); }},
      {&spatial::cuda::bounds_of_polygons_needs,
       [&](const Resident& on) { return spatial::bounds(*runtime_, on.polygons).ok(); }},
      {&spatial::cuda::within_needs,
       [&](const Resident& on) { return spatial::within(*runtime_, on.points, on.polygons).ok(); }},
      {&spatial::cuda::sjoin_needs, join},
      {&spatial::cuda::box_join_needs, join},
  };
  for (const Case& one : cases) {
    std::set<std::string> needed;
    for (const Unit& unit : one.needs->units()) needed.insert(unit.kind() == "cccl" ? unit.source() : unit.name());
    kit_ = open_kit();  // which asks for its algorithms anew
    const bool boxes = one.needs == &spatial::cuda::box_join_needs;
    const Resident there = uploaded({columns.points, boxes ? rectangle : columns.polygons});
    (void)take_events();
    asked_.clear();
    EXPECT_TRUE(one.run(there)) << one.needs->name();
    std::set<std::string> used(asked_.begin(), asked_.end());
    for (const Event& event : take_events()) {
      if (event.kind == Kind::Launched && event.unit != "stand_ins.cu") used.insert(event.unit);
    }
    EXPECT_EQ(needed, used) << one.needs->name();
  }
  for (const UndeclaredUse& use : session_->undeclared()) ADD_FAILURE() << use.unit << " by " << use.caller;
}

TEST_F(SpatialOnCuda, OpeningAColumnRequestsTheUnitsOfItsFamilyAlone) {
  const auto requested_by = [&](const std::function<void()>& open) {
    (void)take_events();
    open();
    std::vector<std::string> units;
    for (const Event& event : take_events()) {
      if (event.kind == Kind::Requested) units.push_back(event.unit);
    }
    return units;
  };
  const SetColumns columns = columns_of(3, 3);
  EXPECT_EQ(requested_by([&] { spatial::open(*runtime_, columns.points); }),
            (std::vector<std::string>{"point_bounds.cu"}));
  EXPECT_EQ(requested_by([&] { spatial::open(*runtime_, columns.polygons); }),
            (std::vector<std::string>{"polygon_bounds.cu"}));
}

TEST_F(SpatialOnCuda, AJoinThatGetsNoMemoryIsAnErrorAndLeaksNothing) {
  const SetColumns columns = columns_of(300, 30);
  unsigned refused = 0;
  for (bool reached = true; reached; ++refused) {
    ASSERT_LT(refused, 100U);
    kit_ = open_kit();  // which has nothing in reserve
    const Resident there = uploaded(columns);
    const std::size_t before = driver_.calls("cuMemAllocAsync");
    driver_.fail("cuMemAllocAsync", refused + 1, cuda::DriverResult::OutOfMemory);
    const auto joined = spatial::sjoin(*runtime_, there.points, there.polygons);
    reached = driver_.calls("cuMemAllocAsync") - before > refused;
    EXPECT_EQ(joined.ok(), !reached) << refused;
  }
  driver_.fail("cuMemAllocAsync", 1, cuda::DriverResult::Success);
  EXPECT_GT(refused, 10U);
}

TEST_F(SpatialOnCuda, AThreadWithoutAContextWorksInThePrimaryOneOfTheDevice) {
  std::thread([&] {
    const auto kit = spatial::DeviceKit::open(*session_, runtime::Backend::Cuda);
    ASSERT_TRUE(kit.ok()) << kit.error().message;
    EXPECT_TRUE((*kit)->allocate(8).ok());
  }).join();
}

TEST_F(SpatialOnCuda, AScanWithoutRoomForItsLastSumIsRefused) {
  const Buffer values = kit_->allocate(4 * sizeof(std::uint32_t)).value();
  const Buffer total = kit_->allocate(sizeof(std::uint32_t)).value();
  EXPECT_EQ(kit_->primitives().exclusive_scan(values, 4, values, total).error().code, Code::InvalidArgument);
  EXPECT_TRUE(kit_->primitives().exclusive_scan(values, 3, values, total).ok());
}

TEST_F(SpatialOnCuda, TheAuditOfAJoinOnTheDeviceFindsNothing) {
  const SetColumns columns = columns_of(3'000, 200);
  {
    // So that the audit sees a path and not its first time.
    const Resident there = uploaded(columns);
    ASSERT_TRUE(spatial::sjoin(*runtime_, there.points, there.polygons).ok());
  }
  TearDown();
  SetUp();
  {
    const Resident there = uploaded(columns);
    const auto pairs = spatial::sjoin(*runtime_, there.points, there.polygons).value();
    EXPECT_EQ(materialise(*runtime_, *pairs.device).value().size(), pairs.device->rows());
  }
  ASSERT_TRUE(session_->write_trace().ok());
  const std::string report = folder_.path("report.json");
  const std::string command =
      std::string(KILN_PROGRAM) + " audit --json " + folder_.path("trace.json") + " > " + report;
  EXPECT_EQ(std::system(command.c_str()), 0) << slurp(report);
  const auto found = nlohmann::json::parse(slurp(report), nullptr, false);
  ASSERT_TRUE(found.is_object()) << slurp(report);
  EXPECT_EQ(found["dispatches"]["gpu"], 1);
  EXPECT_EQ(found["dispatches"]["total"], 1);
  EXPECT_EQ(found["stayed_on_device"], true);
  EXPECT_EQ(found["decisions"][0]["selected"], "cuda");
}

TEST(SpatialCudaProgram, SaysWhatIsMissingWhereThereIsNoDriver) {
  const TemporaryDirectory folder;
  const std::string said = folder.path("said");
  const std::string command = "KILN_CACHE_DIR=" + folder.path("cache") + " KILN_DRIVER=" + folder.path("none.so") +
                              " " + KILN_SPATIAL + " demo --points 10 --polygons 2 --backend cuda > " + said + " 2>&1";
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_NE(slurp(said).find("none.so"), std::string::npos) << slurp(said);
}

TEST(SpatialCudaUnits, AreCompiledForBothArchitecturesWithoutADevice) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  const TemporaryDirectory folder;
  SessionOptions options;
  options.settings = {{"cache.dir", spatial_cuda_cache()}, {"nvrtc", toolkit_nvrtc()}, {"driver", folder.path("none")}};
  for (const auto& [name, value] : options.settings) options.locked.insert(name);
  Session session = Session::open(options).value();
  const std::vector<Unit> units = spatial::cuda::units();
  std::size_t kernels = 0;
  for (const Target& target : {Target::sm(80), Target::sm(90)}) session.request(units, target);
  for (const Target& target : {Target::sm(80), Target::sm(90)}) {
    for (const Unit& unit : units) {
      const auto artifact = session.artifact(unit, target);
      ASSERT_TRUE(artifact.ok()) << unit.name() << ": " << artifact.error().message << artifact.error().log;
      kernels += unit.entries().size();
    }
  }
  EXPECT_EQ(units.size(), 9U);
  EXPECT_EQ(kernels, 2U * 15);
}

}  // namespace
}  // namespace kiln::test
