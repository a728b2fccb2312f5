// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/page.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/report/made_trace.hpp"

namespace kiln::test {
namespace {

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// Returns the JSON in the page as a browser reads it: the element ends at the first `</script`.
nlohmann::json embedded_model(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"model\">";
  const std::size_t at = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(at, page.find("</script", at) - at));
}

TEST(ReportPage, EscapesHostileNames) {
  const std::string hostile = "</script><img src=x onerror=alert(1)><!--\"'&{{style}}\xE2\x80\xAEgnp";
  MadeTrace made(hostile);
  made.trace().command = made.trace().date = hostile;
  made.trace().threads[MadeTrace::kWarm] = "kiln-" + hostile;
  for (const Event::Kind kind : {Event::Kind::Requested, Event::Kind::Miss, Event::Kind::Compiled,
                                 Event::Kind::ClaimWaited, Event::Kind::BlockingCompile, Event::Kind::Loaded,
                                 Event::Kind::LoadRejected, Event::Kind::Launched, Event::Kind::Hit}) {
    made.emit(kind, 100, 1, 1).unit(hostile).message(hostile.c_str()).origin(hostile.c_str());
  }
  const report::Model model = report::make_model({{hostile, made.trace()}});
  const std::string page = report::page(model);
  EXPECT_EQ(times(page, "<img"), 0U);
  EXPECT_EQ(times(page, "<!--"), 0U);
  EXPECT_EQ(times(page, "</script>"), 2U) << "the model and the script";
  EXPECT_EQ(times(page, "<style>"), 1U);
  const nlohmann::json json = embedded_model(page);
  EXPECT_EQ(json, nlohmann::json::parse(report::model_json(model, 2)));
  EXPECT_EQ(json["runs"][0]["first_call"]["unit"], hostile) << "the script receives the name unchanged";
  EXPECT_EQ(json["runs"][0]["lanes"][0]["rows"][0][0]["unit"], hostile);
}

TEST(ReportPage, IsSelfContained) {
  MadeTrace made;
  made.emit(Event::Kind::Compiled, 100, 1, 1);
  const std::string page = report::page(report::make_model({{"t.json", made.trace()}}));
  for (const char* part : {"http://", "https://", "<link", "src=", "@import", "url(", "'unsafe-", "innerHTML", "{{"})
    EXPECT_EQ(times(page, part), 0U) << part;
  for (const char* part : {"default-src 'none'", "style-src 'sha256-", "script-src 'sha256-"})
    EXPECT_EQ(times(page, part), 1U) << part;
}

TEST(ReportPage, NamesTheCommandsForBrowsersWithoutScripts) {
  const std::string page = report::page(report::make_model({{"t.json", MadeTrace().trace()}}));
  const std::size_t begin = page.find("<noscript>");
  const std::string note = page.substr(begin, page.find("</noscript>") - begin);
  EXPECT_EQ(times(note, "<code>kiln report --json TRACE…</code>"), 1U) << note;
  EXPECT_EQ(times(note, "<code>kiln audit TRACE</code>"), 1U) << note;
}

TEST(ReportPage, LimitsSizeForLargeTraces) {
  MadeTrace made;
  for (int i = 0; i < 100'000; ++i) {
    const auto flow = static_cast<std::uint64_t>(i % 5000 + 1);
    const auto kind = i % 3 == 0   ? Event::Kind::Launched
                      : i % 3 == 1 ? Event::Kind::Compiled
                                   : Event::Kind::Synchronized;
    made.emit(kind, 10 + i, 1 + (i * 7919 % 100), flow, 200 + static_cast<std::uint64_t>(i % 40));
    made.trace().events.back().event.stream = static_cast<std::uint64_t>(i % 50);
  }
  const report::Model model = report::make_model({{"t.json", made.trace()}});
  std::uint64_t bars = 0;
  std::uint64_t drawn = 0;
  for (const report::Lane& lane : model.runs[0].lanes) {
    for (const auto& row : lane.rows) {
      bars += row.size();
      for (const report::Bar& bar : row) drawn += bar.count;
    }
  }
  EXPECT_LE(bars, 6000U);
  EXPECT_EQ(drawn + model.runs[0].not_drawn, 100'000U);
  const std::string page = report::page(model);
  EXPECT_LE(page.size(), 3'000'000U);
  const nlohmann::json json = embedded_model(page);
  EXPECT_EQ(json["runs"][0]["events_not_drawn"], model.runs[0].not_drawn);
  EXPECT_EQ(json["programs"][0]["units"].size(), 200U);
  EXPECT_EQ(json["programs"][0]["units_in_all"], 5000);
}

TEST(ReportPage, HandlesEmptyTrace) {
  const nlohmann::json json = embedded_model(report::page(report::make_model({{"t.json", MadeTrace().trace()}})));
  EXPECT_TRUE(json["waits"].empty());
  EXPECT_TRUE(json["programs"][0]["units"].empty());
  const nlohmann::json& run = json["runs"][0];
  EXPECT_EQ(run["span_ms"], 0);
  EXPECT_EQ(run["first_launch_ms"], nullptr);
  EXPECT_EQ(run["first_call"], nullptr);
  EXPECT_TRUE(run["lanes"].empty());
}

}  // namespace
}  // namespace kiln::test
