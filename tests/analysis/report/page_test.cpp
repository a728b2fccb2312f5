#include "analysis/report/page.hpp"

#include <gtest/gtest.h>

#include "analysis/report/made_trace.hpp"

namespace kiln::test {
namespace {

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(ReportPage, EscapesHostileNames) {
  const std::string hostile = "</script><img src=x onerror=alert(1)>\"'&{{style}}\xE2\x80\xAEgnp";
  MadeTrace made(hostile);
  made.trace().command = made.trace().date = hostile;
  made.trace().threads[MadeTrace::kWarm] = "kiln-" + hostile;
  for (const Event::Kind kind : {Event::Kind::Requested, Event::Kind::Miss, Event::Kind::Compiled,
                                 Event::Kind::ClaimWaited, Event::Kind::BlockingCompile, Event::Kind::Loaded,
                                 Event::Kind::LoadRejected, Event::Kind::Launched, Event::Kind::Hit}) {
    made.emit(kind, 100, 1, 1).unit(hostile).message(hostile.c_str()).origin(hostile.c_str());
  }
  const std::string page = report::page(report::make_model({{hostile, made.trace()}}));
  EXPECT_EQ(times(page, "<img"), 0U);
  EXPECT_EQ(times(page, "</script>"), 2U) << "the model and the script";
  EXPECT_EQ(times(page, "\xE2\x80\xAEgnp") - times(page, "{{style}}\xE2\x80\xAEgnp"), 0U);
  EXPECT_EQ(times(page, "<style>"), 1U);
  EXPECT_EQ(
      times(page, "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;{{style}}\xEF\xBF\xBDgnp") > 5,
      true);
}

TEST(ReportPage, IsSelfContained) {
  MadeTrace made;
  made.emit(Event::Kind::Compiled, 100, 1, 1);
  const std::string page = report::page(report::make_model({{"t.json", made.trace()}}));
  for (const char* part : {"http://", "https://", "<link", "src=", "@import", "url("})
    EXPECT_EQ(times(page, part), 0U) << part;
  EXPECT_EQ(times(page, "default-src 'none'"), 1U);
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
  EXPECT_EQ(times(page, "are not drawn"), 1U);
  EXPECT_EQ(times(page, "The first 40 of 5000 units are shown."), 1U);
}

TEST(ReportPage, HandlesEmptyTrace) {
  const std::string page = report::page(report::make_model({{"t.json", MadeTrace().trace()}}));
  EXPECT_EQ(times(page, "The traces contain no waits."), 2U);
  EXPECT_EQ(times(page, "nan"), 0U);
}

}  // namespace
}  // namespace kiln::test
