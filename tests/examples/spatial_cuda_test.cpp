// SPDX-License-Identifier: Apache-2.0
// The CUDA variants of examples/spatial: NVRTC really compiles the units, and in place of each kernel the fake driver
// runs the same file built by the host compiler. No GPU is used.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "examples/spatial_cuda.hpp"
#include "support/fixtures/coverage.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/geos_oracle.hpp"

namespace kiln::test {
namespace {

using Kind = Event::Kind;

bool copies_out(const Event& event) { return event.kind == Kind::Copied && event.message == "from the device"; }
bool allocates(const Event& event) { return event.kind == Kind::Allocated && event.message == "allocated"; }
std::size_t number_of(const std::vector<Event>& events, Kind kind) {
  return static_cast<std::size_t>(
      std::count_if(events.begin(), events.end(), [kind](const Event& event) { return event.kind == kind; }));
}
std::size_t number_of(const std::vector<Event>& events, const EventType& type) {
  return static_cast<std::size_t>(
      std::count_if(events.begin(), events.end(), [&type](const Event& event) { return event.is(type); }));
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
  // Compares every operation on columns on the device with GEOS.
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
    expect_equal(materialize(*runtime_, *of_points.device).value(), oracle.bounds_of_points(), set.name + ", points");
    expect_equal(materialize(*runtime_, *of_polygons.device).value(), oracle.bounds_of_polygons(),
                 set.name + ", polygons");
    expect_equal(materialize(*runtime_, *mask.device).value(), oracle.within_rows(), set.name + ", within");
    expect_equal(materialize(*runtime_, *pairs.device).value(), oracle.pairs(), set.name + ", sjoin");
    const auto areas = spatial::area(*runtime_, all.polygons).value();
    expect_close(materialize(*runtime_, *areas.device).value(), oracle, columns.polygons, runtime::Precision::Fp64,
                 set.name + ", area");
    const Resident one = uploaded({columns.points, rows_of(columns.polygons, 0, 1)});
    const auto of_one = spatial::within(*runtime_, one.points, one.polygons).value();
    expect_equal(materialize(*runtime_, *of_one.device).value(), oracle.within_one(0), set.name + ", within one");
  }
};

TEST_F(SpatialOnCuda, EveryOperationEqualsGeosOnEveryGeneratedSet) {
  for (std::uint64_t number = 0; number < kGeneratedSets; ++number) {
    expect_equal_to_geos_there(generated_set(number));
    ASSERT_FALSE(HasFatalFailure()) << number;
  }
  EXPECT_EQ(runtime_->counts().on_device, 6 * kGeneratedSets - 4)
      << "one set has no points, so nothing is launched for them";
  EXPECT_EQ(runtime_->counts().fallbacks, 0U);
}

TEST_F(SpatialOnCuda, WkbEqualsGeos) {
  for (std::uint64_t number = 0; number < kGeneratedSets; number += 3) {
    const GeneratedSet set = generated_set(number);
    const GeosOracle oracle(set);
    const Resident there = uploaded(read_columns(oracle));
    const auto points = spatial::to_wkb(*runtime_, there.points).value();
    const auto polygons = spatial::to_wkb(*runtime_, there.polygons).value();
    expect_equal(materialize(*runtime_, *points.device).value(), oracle.points_wkb(), set.name + ", points");
    expect_equal(materialize(*runtime_, *polygons.device).value(), oracle.column_wkb(), set.name + ", polygons");
    ASSERT_FALSE(HasFailure()) << number;
  }
}

TEST_F(SpatialOnCuda, DissolveEqualsGeosAndReadsOnlySizes) {
  for (std::uint64_t number = 0; number < kCoverages; ++number) {
    const CoverageSet set = coverage(number);
    const auto polygons = upload(*runtime_, kit_, polygons_of(set)).value();
    const auto keys = upload(*runtime_, kit_, set.keys).value();
    (void)take_events();
    const auto result = spatial::dissolve(*runtime_, polygons, keys);
    ASSERT_TRUE(result.has_value()) << number << ": " << result.error().message;
    std::size_t reads = 0;
    for (const Event& event : take_events()) {
      if (event.kind != Kind::Copied) continue;
      EXPECT_TRUE(copies_out(event) && event.bytes == 4 && event.context.purpose == Purpose::AllocationSize);
      ++reads;
    }
    EXPECT_LE(reads, 3U);
    expect_union(materialize(*runtime_, *result->device).value(), set, std::to_string(number));
    ASSERT_FALSE(HasFailure()) << number;
  }
  EXPECT_EQ(runtime_->counts().fallbacks, 0U);
}

TEST_F(SpatialOnCuda, DissolveRejectsEqualPolygonsAndNan) {
  const auto keys = upload(*runtime_, kit_, spatial::KeyColumn{{1, 1}}).value();
  for (const double last : {0.0, spatial::kNotANumber, 1.0}) {
    spatial::PolygonColumn column;
    for (const double x : {0.0, last}) {
      column.add_ring({{x, 0}, {x + 1, 0}, {x + 1, 1}, {x, 1}, {x, 0}});
      column.end_row();
    }
    EXPECT_EQ(spatial::dissolve(*runtime_, upload(*runtime_, kit_, column).value(), keys).has_value(), last == 1);
  }
}

TEST_F(SpatialOnCuda, JoinDecidesOnceAndReadsOneScalarPerAllocation) {
  const SetColumns columns = columns_of(3'000, 200);
  const Resident there = uploaded(columns);
  (void)take_events();
  const std::size_t waits = driver_.calls("cuStreamSynchronize");
  const auto pairs = spatial::sjoin(*runtime_, there.points, there.polygons).value();
  const std::vector<Event> events = take_events();
  ASSERT_NE(pairs.device, nullptr);
  EXPECT_EQ(number_of(events, runtime::events::kDecided), 1U);
  EXPECT_EQ(number_of(events, runtime::events::kDispatched), 1U);
  EXPECT_EQ(number_of(events, Kind::Synchronized), 0U);
  EXPECT_EQ(std::count_if(events.begin(), events.end(), copies_out), 3);
  EXPECT_EQ(driver_.calls("cuStreamSynchronize") - waits, 3U) << "only the scalars are waited for";
  for (auto event = events.begin(); event != events.end(); ++event) {
    if (event->kind == Kind::Copied) {
      EXPECT_TRUE(copies_out(*event));
      EXPECT_EQ(event->bytes, 4U);
      EXPECT_EQ(event->context.purpose, Purpose::AllocationSize);
      const auto next = std::find_if(event + 1, events.end(), [](const Event& later) {
        return allocates(later) || later.kind == Kind::Launched || later.kind == Kind::Copied;
      });
      EXPECT_TRUE(next != events.end() && allocates(*next)) << "the scalar must size the next allocation";
    }
    if (event->kind != Kind::Launched) continue;
    EXPECT_EQ(event->block_threads, event->suggested_block_threads) << event->message;
  }
}

TEST_F(SpatialOnCuda, JoinLaunchesFollowStagesAndCoverRows) {
  constexpr std::size_t kPoints = 3'000;
  constexpr std::size_t kPolygons = 200;
  constexpr std::size_t kCells = 1024 + 256 + 64 + 16 + 4 + 1;  // cells of the grids over 200 polygons
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

TEST_F(SpatialOnCuda, WithinAndBoundsReadNothingBackAndUseFewLaunches) {
  const SetColumns columns = columns_of(300, 300);
  const Resident there = uploaded(columns);
  (void)take_events();
  const std::size_t before = driver_.launches().size();
  ASSERT_TRUE(spatial::within(*runtime_, there.points, there.polygons).has_value());
  ASSERT_TRUE(spatial::bounds(*runtime_, there.points).has_value());
  ASSERT_TRUE(spatial::bounds(*runtime_, there.polygons).has_value());
  const std::vector<Event> events = take_events();
  EXPECT_EQ(number_of(events, runtime::events::kDecided), 3U);
  EXPECT_EQ(number_of(events, Kind::Copied), 0U);
  EXPECT_EQ(number_of(events, Kind::Synchronized), 0U);
  std::vector<std::string> names;
  for (const auto& launch : driver_.launches()) names.push_back(launch.kernel);
  names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(before));
  EXPECT_EQ(names, (std::vector<std::string>{"polygon_bounds", "within_filter", "compact_numbers", "stand_in_select",
                                             "compact_indices", "within_refine", "point_bounds", "polygon_bounds"}));
}

TEST_F(SpatialOnCuda, EachOperationUsesExactlyItsDeclaredUnits) {
  const SetColumns columns = columns_of(300, 300);
  spatial::PolygonColumn rectangle;
  rectangle.add_ring({{0, 0}, {0.5, 0}, {0.5, 0.5}, {0, 0.5}, {0, 0}});
  rectangle.end_row();
  struct Case {
    const Requirements* requirements;
    std::function<bool(const Resident&)> run;
  };
  const auto join = [&](const Resident& on) { return spatial::sjoin(*runtime_, on.points, on.polygons).has_value(); };
  const Case cases[] = {
      {&spatial::cuda::bounds_of_points_requirements,
       [&](const Resident& on) { return spatial::bounds(*runtime_, on.points).has_value(); }},
      {&spatial::cuda::bounds_of_polygons_requirements,
       [&](const Resident& on) { return spatial::bounds(*runtime_, on.polygons).has_value(); }},
      {&spatial::cuda::within_requirements,
       [&](const Resident& on) { return spatial::within(*runtime_, on.points, on.polygons).has_value(); }},
      {&spatial::cuda::sjoin_requirements, join},
      {&spatial::cuda::box_join_requirements, join},
      {&spatial::cuda::wkb_of_points_requirements,
       [&](const Resident& on) { return spatial::to_wkb(*runtime_, on.points).has_value(); }},
      {&spatial::cuda::wkb_of_polygons_requirements,
       [&](const Resident& on) { return spatial::to_wkb(*runtime_, on.polygons).has_value(); }},
      {&spatial::cuda::dissolve_requirements,
       [&](const Resident& on) {
         const auto keys = upload(*runtime_, kit_, spatial::KeyColumn{{1}}).value();
         return spatial::dissolve(*runtime_, on.polygons, keys).has_value();
       }},
  };
  for (const Case& one : cases) {
    std::set<std::string> needed;
    for (const Unit& unit : one.requirements->units())
      needed.insert(unit.kind() == "cccl" ? unit.source() : unit.name());
    kit_ = open_kit();  // requests its algorithms again
    const bool boxes = one.requirements == &spatial::cuda::box_join_requirements ||
                       one.requirements == &spatial::cuda::dissolve_requirements;
    const Resident there = uploaded({columns.points, boxes ? rectangle : columns.polygons});
    (void)take_events();
    asked_.clear();
    EXPECT_TRUE(one.run(there)) << one.requirements->name();
    std::set<std::string> used(asked_.begin(), asked_.end());
    for (const Event& event : take_events()) {
      if (event.kind == Kind::Launched && event.unit != "stand_ins.cu") used.insert(event.unit);
    }
    EXPECT_EQ(needed, used) << one.requirements->name();
  }
  for (const UndeclaredUse& use : session_->undeclared()) ADD_FAILURE() << use.unit << " by " << use.caller;
}

TEST_F(SpatialOnCuda, OpeningColumnRequestsOnlyUnitsOfItsType) {
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

TEST_F(SpatialOnCuda, JoinWithoutMemoryFailsAndLeaksNothing) {
  const SetColumns columns = columns_of(300, 30);
  unsigned rejected = 0;
  for (bool reached = true; reached; ++rejected) {
    ASSERT_LT(rejected, 100U);
    kit_ = open_kit();  // has no retained memory
    const Resident there = uploaded(columns);
    const std::size_t before = driver_.calls("cuMemAllocAsync");
    driver_.fail("cuMemAllocAsync", rejected + 1, cuda::DriverResult::OutOfMemory);
    const auto joined = spatial::sjoin(*runtime_, there.points, there.polygons);
    reached = driver_.calls("cuMemAllocAsync") - before > rejected;
    EXPECT_EQ(joined.has_value(), !reached) << rejected;
  }
  driver_.fail("cuMemAllocAsync", 1, cuda::DriverResult::Success);
  EXPECT_GT(rejected, 10U);
}

TEST_F(SpatialOnCuda, ThreadWithoutContextUsesPrimaryContext) {
  std::thread([&] {
    const auto kit = spatial::DeviceContext::open(*session_, runtime::Backend::Cuda);
    ASSERT_TRUE(kit.has_value()) << kit.error().message;
    EXPECT_TRUE((*kit)->allocate(8).has_value());
  }).join();
}

TEST_F(SpatialOnCuda, RejectsScanWithoutSpaceForLastSum) {
  const Buffer values = kit_->allocate(4 * sizeof(std::uint32_t)).value();
  const Buffer total = kit_->allocate(sizeof(std::uint32_t)).value();
  EXPECT_EQ(kit_->primitives().exclusive_scan(values, 4, values, total).error().code, Code::InvalidArgument);
  EXPECT_TRUE(kit_->primitives().exclusive_scan(values, 3, values, total).has_value());
}

class SpatialAuditOnCuda : public SpatialOnCuda {
 protected:
  // Returns the audit of the session's trace, which must have no findings.
  nlohmann::json audited() {
    EXPECT_TRUE(session_->write_trace().has_value());
    const std::string report = directory_.path("report.json");
    const std::string command =
        std::string(KILN_PROGRAM) + " audit --json " + directory_.path("trace.json") + " > " + report;
    EXPECT_EQ(std::system(command.c_str()), 0) << read_text(report);
    nlohmann::json found = nlohmann::json::parse(read_text(report), nullptr, false);
    EXPECT_TRUE(found.is_object()) << read_text(report);
    return found;
  }
};

TEST_F(SpatialAuditOnCuda, DeviceJoinHasNoFindings) {
  const SetColumns columns = columns_of(3'000, 200);
  {
    // Warms up, so that the audit does not see the costs of the first run.
    const Resident there = uploaded(columns);
    ASSERT_TRUE(spatial::sjoin(*runtime_, there.points, there.polygons).has_value());
  }
  TearDown();
  SetUp();
  {
    const Resident there = uploaded(columns);
    const auto pairs = spatial::sjoin(*runtime_, there.points, there.polygons).value();
    EXPECT_EQ(materialize(*runtime_, *pairs.device).value().size(), pairs.device->rows());
  }
  const nlohmann::json found = audited();
  EXPECT_EQ(found["dispatches"]["gpu"], 1);
  EXPECT_EQ(found["dispatches"]["total"], 1);
  EXPECT_EQ(found["stayed_on_device"], true);
  EXPECT_EQ(found["decisions"][0]["selected"], "cuda");
}

TEST_F(SpatialAuditOnCuda, DeviceDissolveAndWkbHaveNoFindings) {
  const CoverageSet set = CoverageMaker(77).make(30, 30);
  const spatial::PolygonColumn column = polygons_of(set);
  const auto run = [&] {
    const auto polygons = upload(*runtime_, kit_, column).value();
    const auto keys = upload(*runtime_, kit_, set.keys).value();
    const auto dissolved = spatial::dissolve(*runtime_, polygons, keys).value();
    const auto wkb = spatial::to_wkb(*runtime_, dissolved.device->polygons).value();
    EXPECT_EQ(materialize(*runtime_, *wkb.device).value().rows(), dissolved.device->rows());
  };
  run();  // warms up
  TearDown();
  SetUp();
  run();
  const nlohmann::json found = audited();
  EXPECT_EQ(found["dispatches"]["gpu"], 2);
  EXPECT_EQ(found["stayed_on_device"], true);
}

TEST(SpatialCudaProgram, ReportsMissingDriver) {
  const TemporaryDirectory directory;
  const std::string said = directory.path("said");
  const std::string command = "KILN_CACHE_DIR=" + directory.path("cache") +
                              " KILN_DRIVER=" + directory.path("none.so") + " " + KILN_SPATIAL +
                              " demo --points 10 --polygons 2 --backend cuda > " + said + " 2>&1";
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_NE(read_text(said).find("none.so"), std::string::npos) << read_text(said);
}

TEST(SpatialCudaUnits, CompileForBothArchitecturesWithoutDevice) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  const TemporaryDirectory directory;
  SessionOptions options;
  options.settings = {
      {"cache.dir", spatial_cuda_cache()}, {"nvrtc", toolkit_nvrtc()}, {"driver", directory.path("none")}};
  for (const auto& [name, value] : options.settings) options.locked.insert(name);
  Session session = Session::open(options).value();
  const std::vector<Unit> units = spatial::cuda::units();
  std::size_t kernels = 0;
  for (const Target& target : {Target::sm(80), Target::sm(90)}) session.request(units, target);
  for (const Target& target : {Target::sm(80), Target::sm(90)}) {
    for (const Unit& unit : units) {
      const auto artifact = session.artifact(unit, target);
      ASSERT_TRUE(artifact.has_value()) << unit.name() << ": " << artifact.error().message << artifact.error().log;
      kernels += unit.entries().size();
    }
  }
  EXPECT_EQ(units.size(), 20U);
  EXPECT_EQ(kernels, 2U * 50);
}

}  // namespace
}  // namespace kiln::test
