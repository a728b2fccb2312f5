// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/report/jit_events.hpp"
#include "analysis/report/made_trace.hpp"

namespace kiln::test {
namespace {

MadeTrace cold_run(const char* process) {
  MadeTrace made(process);
  made.emit(Event::Kind::Requested, 1, 0, 1)
      .emit(Event::Kind::Miss, 2, 0, 1, MadeTrace::kWarm)
      .message("no earlier build of this unit is known")
      .emit(Event::Kind::Compiled, 102, 100, 1, MadeTrace::kWarm)
      .emit(Event::Kind::BlockingCompile, 103, 90, 1)
      .emit(Event::Kind::Loaded, 110, 5, 1)
      .emit(Event::Kind::Launched, 112, 1, 1);
  return made;
}

MadeTrace warm_run(const char* process) {
  MadeTrace made(process);
  made.emit(Event::Kind::Requested, 1, 0, 1)
      .emit(Event::Kind::Hit, 2, 0.5, 1, MadeTrace::kWarm)
      .origin("disk")
      .emit(Event::Kind::Loaded, 8, 5, 1)
      .emit(Event::Kind::Launched, 10, 1, 1);
  return made;
}

TEST(ReportModel, RanksWaitsAndExcludesBackgroundThreads) {
  MadeTrace made;
  made.emit(Event::Kind::Loaded, 10, 5)
      .emit(Event::Kind::Loaded, 30, 20, 1, MadeTrace::kWarm)
      .emit(Event::Kind::Synchronized, 40, 8)
      .emit(Event::Kind::ClaimWaited, 60, 30, 1, MadeTrace::kWarm)
      .emit(Event::Kind::Compiled, 200, 100, 1)
      .emit(Event::Kind::BlockingCompile, 210, 12, 1);
  const report::Model model = report::make_model({{"t.json", made.trace()}});
  std::vector<std::uint64_t> events;
  for (const report::Wait& wait : model.waits) events.push_back(wait.event);
  EXPECT_EQ(events, (std::vector<std::uint64_t>{4, 6, 3, 1}));
  EXPECT_TRUE(model.waits[0].background);
  EXPECT_EQ(model.waits[0].who, "kiln-compile-0");
  EXPECT_EQ(model.waits[1].who, "app") << "the first thread has the program's name";
  EXPECT_EQ(model.runs[0].waited_ms, 25) << "waits of the program's threads only";
}

TEST(ReportModel, CountsOverlappingWaitsOfOneThreadOnce) {
  MadeTrace made;
  made.emit(Event::Kind::LeaseWaited, 50, 40)
      .emit(Event::Kind::ClaimWaited, 55, 50)
      .emit(Event::Kind::Synchronized, 100, 10);
  EXPECT_EQ(report::make_model({{"t.json", made.trace()}}).runs[0].waited_ms, 60);
}

TEST(ReportModel, GroupsRunsByProgramAndLabelsColdAndWarm) {
  const report::Model model = report::make_model({{"a.json", cold_run("app").trace()},
                                                  {"b.json", warm_run("other").trace()},
                                                  {"c.json", warm_run("app").trace()},
                                                  {"d.json", warm_run("app").trace()}});
  ASSERT_EQ(model.programs.size(), 2U);
  EXPECT_EQ(model.programs[0].name, "app");
  EXPECT_EQ(model.programs[0].runs, (std::vector<std::size_t>{0, 2, 3}));
  EXPECT_EQ(model.programs[0].cold, 0U);
  EXPECT_EQ(model.programs[0].warm, 2U);
  EXPECT_FALSE(model.programs[1].cold);
  EXPECT_EQ(model.runs[0].label, "cold");
  EXPECT_EQ(model.runs[2].label, "warm");
  EXPECT_EQ(model.runs[3].label, "warm 2");
  EXPECT_EQ(model.runs[0].first_launch_ms, 112);
  EXPECT_EQ(model.runs[2].first_launch_ms, 10);
  ASSERT_EQ(model.runs[0].tiers.size(), 1U);
  EXPECT_EQ(model.runs[0].tiers[0].name, "compiled");
  EXPECT_EQ(model.runs[2].tiers[0].name, "disk");
}

TEST(ReportModel, FirstResultIsReadOrAwaitedAfterFirstLaunch) {
  const auto first_result = [](MadeTrace& made) {
    return report::make_model({{"a.json", made.trace()}}).runs[0].first_result_ms;
  };
  MadeTrace made;
  made.emit(Event::Kind::Copied, 5, 1).message("from the device").emit(Event::Kind::Launched, 10, 1, 1);
  EXPECT_FALSE(first_result(made)) << "nothing was read after the launch";
  made.emit(Event::Kind::Copied, 20, 1).message("from the device");
  made.trace().events.back().event.context.purpose = Purpose::AllocationSize;
  made.emit(Event::Kind::Synchronized, 30, 1);
  made.trace().events.back().event.context.purpose = Purpose::Trace;
  made.emit(Event::Kind::Copied, 40, 1).message("to the device");
  EXPECT_FALSE(first_result(made)) << "a size, a wait of the trace and a copy to the device are not results";
  made.emit(Event::Kind::Copied, 50, 1).message("from the device").emit(Event::Kind::Synchronized, 60, 1);
  EXPECT_EQ(first_result(made), 50);
}

TEST(ReportModel, MissHasCauseAndResult) {
  const report::Model model = report::make_model({{"a.json", cold_run("app").trace()}});
  ASSERT_EQ(model.runs[0].misses.size(), 1U);
  const report::Miss& miss = model.runs[0].misses[0];
  EXPECT_EQ(miss.reason, "no earlier build of this unit is known");
  EXPECT_EQ(miss.end, "compiled");
  EXPECT_EQ(miss.cost_ms, 100);
}

TEST(ReportModel, MissOfAnotherSystemHasTheCostOfItsEntry) {
  MadeTrace made;
  made.emit(Event::Kind::Miss, 1, 0).unit("0123456789ab").trace().events.back().event.key = "0123456789ab00";
  made.emit(Event::Kind::Miss, 2, 0).unit("ffff").trace().events.back().event.key = "ffff00";
  made.emit(Event::Kind::Published, 40, 30).unit("matmul").trace().events.back().event.key = "0123456789ab00";
  const auto misses = report::make_model({{"a.json", made.trace()}}).runs[0].misses;
  ASSERT_EQ(misses.size(), 2U);
  EXPECT_EQ(misses[0].unit, "matmul");
  EXPECT_EQ(misses[0].end, "compiled");
  EXPECT_EQ(misses[0].cost_ms, 30);
  EXPECT_EQ(misses[1].end, "") << "it was not stored";
}

TEST(ReportModel, JsonHasTheCachesOfOtherSystems) {
  MadeTrace made;
  const auto add = [&](const EventType& type) -> Event& {
    made.emit(Event::Kind::Extension, 9, 2).trace().events.back().event = Event::of(type);
    return made.trace().events.back().event;
  };
  Event& skipped = add(report::kEntrySkipped);
  skipped.unit = "00aa";
  skipped.target = "toy";
  skipped.selected = "missing";
  skipped.message = "no tier has the entry";
  Event& filled = add(report::kCacheFilled);
  filled.unit = "toy";
  filled.message = "1 placed, 1 missing";
  filled.ms = 2;
  filled.bytes = 100;
  add(report::kCachePublished).unit = "toy";
  const nlohmann::json json =
      nlohmann::json::parse(report::model_json(report::make_model({{"a.json", made.trace()}}), -1));
  const nlohmann::json& run = json["runs"][0];
  EXPECT_EQ(run["caches_in_all"], 2);
  EXPECT_EQ(run["caches"][0]["kind"], "cache_filled");
  EXPECT_EQ(run["caches"][0]["system"], "toy");
  EXPECT_EQ(run["caches"][0]["text"], "1 placed, 1 missing");
  EXPECT_EQ(run["caches"][0]["ms"], 2);
  EXPECT_EQ(run["caches"][0]["bytes"], 100);
  ASSERT_EQ(run["skipped_entries_in_all"], 1);
  EXPECT_EQ(run["skipped_entries"][0]["path"], "00aa");
  EXPECT_EQ(run["skipped_entries"][0]["system"], "toy");
  EXPECT_EQ(run["skipped_entries"][0]["state"], "missing");
  EXPECT_EQ(run["skipped_entries"][0]["why"], "no tier has the entry");
}

TEST(ReportModel, JsonHasWaitsAndFirstCall) {
  const report::Model model = report::make_model({{"a.json", cold_run("app").trace()}});
  const nlohmann::json json = nlohmann::json::parse(report::model_json(model, -1));
  EXPECT_EQ(json["waits"][0]["kind"], "blocking_compile");
  EXPECT_EQ(json["waits"][0]["ms"], 90.0);
  const nlohmann::json& run = json["runs"][0];
  EXPECT_EQ(run["first_call"]["unit"], "unit 1");
  EXPECT_EQ(run["compiles"], 1);
  EXPECT_EQ(json["programs"][0]["cold"], 0);
  EXPECT_EQ(json["programs"][0]["warm"], nullptr);
}

TEST(ReportModel, JsonHasFirstCallThatIsNotAmongTheListedUnits) {
  MadeTrace made;
  for (std::uint64_t flow = 1; flow <= 300; ++flow)
    made.emit(Event::Kind::Requested, static_cast<double>(flow), 0, flow);
  made.emit(Event::Kind::Launched, 400, 1, 300);
  const nlohmann::json json =
      nlohmann::json::parse(report::model_json(report::make_model({{"a.json", made.trace()}}), -1));
  EXPECT_EQ(json["runs"][0]["units"].size(), 200U);
  EXPECT_EQ(json["runs"][0]["units_in_all"], 300);
  EXPECT_EQ(json["runs"][0]["first_call"]["unit"], "unit 300");
}

TEST(ReportModel, JsonComparesUnitsOfTheRunsOfAProgram) {
  MadeTrace cold = cold_run("app");
  cold.emit(Event::Kind::Compiled, 400, 250, 2).emit(Event::Kind::Compiled, 500, 10, 2);
  const report::Model model = report::make_model({{"a.json", cold.trace()}, {"b.json", warm_run("app").trace()}});
  const nlohmann::json json = nlohmann::json::parse(report::model_json(model, -1));
  const nlohmann::json& units = json["programs"][0]["units"];
  ASSERT_EQ(units.size(), 2U);
  EXPECT_EQ(units[0]["unit"], "unit 2") << "the unit with the longest work is first";
  EXPECT_EQ(units[0]["runs"][1], nullptr) << "the second run did not use it";
  EXPECT_EQ(units[1]["target"], "sm_90");
  EXPECT_EQ(units[1]["runs"][0]["origin"], "compiled");
  EXPECT_EQ(units[1]["runs"][0]["work_ms"], 105) << "compile and load, without queue, idle times and launch";
  EXPECT_EQ(units[1]["runs"][1]["origin"], "disk");
  EXPECT_EQ(units[1]["runs"][1]["work_ms"], 5.5);
}

TEST(ReportModel, JsonHasBarsOfTheTimeline) {
  MadeTrace made;
  made.emit(Event::Kind::Compiled, 100, 90, 1, MadeTrace::kWarm).message(std::string(500, 'm').c_str());
  made.emit(Event::Kind::Launched, 110, 2, 1).trace().events.back().event.stream = 7;
  const nlohmann::json json =
      nlohmann::json::parse(report::model_json(report::make_model({{"a.json", made.trace()}}), -1));
  const nlohmann::json& lanes = json["runs"][0]["lanes"];
  ASSERT_EQ(lanes.size(), 2U);
  EXPECT_EQ(lanes[0]["stream"], true) << "threads of kiln come last";
  const nlohmann::json& launch = lanes[0]["rows"][0][0];
  EXPECT_EQ(launch["category"], "launch");
  EXPECT_EQ(launch["kind"], "launched");
  EXPECT_EQ(launch["event"], 2);
  EXPECT_EQ(launch["count"], 1);
  EXPECT_EQ(launch["at_ms"], 108);
  EXPECT_EQ(launch["end_ms"], 110);
  EXPECT_EQ(launch["ms"], 2);
  EXPECT_EQ(launch["unit"], "unit 1");
  EXPECT_EQ(launch["thread"], "app");
  EXPECT_EQ(lanes[1]["name"], "kiln-compile-0");
  const nlohmann::json& compile = lanes[1]["rows"][0][0];
  EXPECT_FALSE(compile.contains("thread")) << "it is the lane";
  EXPECT_EQ(compile["message"], std::string(120, 'm') + "…");
}

}  // namespace
}  // namespace kiln::test
