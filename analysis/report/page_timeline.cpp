// The timeline section: threads and streams of each run as lanes.
#include <array>
#include <cmath>

#include "analysis/report/page.hpp"

namespace kiln::report {
namespace {

// Minimum fraction of the timeline for a bar with text.
constexpr double kRoomForText = 0.2;

// Returns the tick distance: 1, 2 or 5 times a power of ten, for four to eight ticks.
double tick_ms(double span) {
  const double rough = span / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double part = rough / power;
  return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

void put_axis(Html& to, double span) {
  to.open("div", {{"class", "axis"}, {"aria-hidden", "true"}});
  if (span > 0) {
    const double tick = tick_ms(span);
    for (int i = 0; i * tick < span * 0.97 && i < 12; ++i) {
      to.put("span", {{"style", span_style(i * tick, 0, span)}}, i == 0 ? "0" : format_duration(i * tick));
    }
  }
  to.close("div");
}

// Returns a text description of a lane, for screen readers.
std::string lane_text(const Lane& lane) {
  std::array<std::uint64_t, kMarks> counts{};
  for (const auto& row : lane.rows) {
    for (const Bar& bar : row) counts[static_cast<unsigned>(bar.mark)] += bar.count;
  }
  std::string text = lane.name + ':';
  for (unsigned mark = 0; mark < kMarks; ++mark) {
    if (counts[mark] != 0)
      text += ' ' + std::to_string(counts[mark]) + " × " + display_name(static_cast<EventCategory>(mark)) + ',';
  }
  text.pop_back();
  return text;
}

void put_bar(Html& to, const Bar& bar, double span) {
  const double length = bar.end_ms - bar.start_ms;
  std::string text = bar.text;
  if (bar.count > 1) text = std::to_string(bar.count) + " adjacent events, first: " + text;
  to.open("i", {{"class", std::string("mark ") + to_string(bar.mark)},
                {"style", span_style(bar.start_ms, length, span)},
                {"title", text},
                {"data-event", std::to_string(bar.event)}});
  if (length > kRoomForText * span) to.put("span", text.substr(0, text.find(" · at ")));
  to.close("i");
}

void put_lane(Html& to, const Lane& lane, double span) {
  to.open("div", {{"class", "lane"}}).put("span", {{"class", "lane-name"}}, lane.name);
  to.open("div", {{"role", "img"}, {"aria-label", lane_text(lane)}});
  for (const auto& row : lane.rows) {
    to.open("div", {{"class", "row"}});
    for (const Bar& bar : row) put_bar(to, bar, span);
    to.close("div");
  }
  to.close("div").close("div");
}

void put_legend(Html& to) {
  to.open("ul", {{"class", "legend"}, {"aria-label", "Colors"}});
  for (unsigned mark = 0; mark < kMarks; ++mark) {
    to.open("li").put("i", {{"class", std::string("key ") + to_string(static_cast<EventCategory>(mark))}});
    to.text(display_name(static_cast<EventCategory>(mark))).close("li");
  }
  to.close("ul");
}

void put_timeline(Html& to, const Run& run) {
  to.open("figure", {{"class", "timeline"}}).open("figcaption");
  put_label(to, run);
  to.text(' ' + run.process + " · " + format_duration(run.span_ms) + ", " +
          format_count(run.events, "event", "events"));
  to.close("figcaption");
  to.open("div", {{"class", "scroll"},
                  {"tabindex", "0"},
                  {"role", "group"},
                  {"aria-label", "Timeline of " + name_of(run) + "; arrow keys select marks"}});
  to.open("div", {{"class", "wide"}});
  put_axis(to, run.span_ms);
  for (const Lane& lane : run.lanes) put_lane(to, lane, run.span_ms);
  to.close("div").close("div");
  to.put("p", {{"class", "detail"}, {"aria-live", "polite"}});
  if (run.not_drawn != 0) {
    to.put("p", {{"class", "note"}},
           format_count(run.not_drawn, "event is", "events are") +
               " not drawn because of the size limit. The trace contains all events; open it in Perfetto.");
  }
  to.close("figure");
}

}  // namespace

void put_timelines(Html& to, const Model& model) {
  to.open("section", {{"id", "timeline"}}).put("h2", "Timeline");
  to.put("p", {{"class", "about"}},
         "The threads of the program, its streams, then the threads of kiln. Each run has its own scale. On a stream "
         "a mark is the host time of the call, not the device time.");
  put_legend(to);
  for (const Run& run : model.runs) put_timeline(to, run);
  to.close("section");
}

}  // namespace kiln::report
