// The sections that compare runs and units side by side.
#include <algorithm>
#include <map>

#include "analysis/report/page.hpp"

namespace kiln::report {
namespace {

constexpr std::size_t kMaxUnits = 40;
constexpr std::size_t kMaxRunsBeside = 4;

std::string times_text(double larger, double smaller) {
  const double times = larger / smaller;
  char text[32];
  std::snprintf(text, sizeof text, times >= 10 ? "%.0f" : "%.1f", times);
  return text;
}

// Returns a sentence that compares the cold and the warm run.
std::string sentence_of(const Model& model, const Program& program) {
  const Run* cold = program.cold ? &model.runs[*program.cold] : nullptr;
  const Run* warm = program.warm ? &model.runs[*program.warm] : nullptr;
  if (cold == nullptr || warm == nullptr || !cold->first_launch_ms || !warm->first_launch_ms) {
    const Run& only = model.runs[program.runs.front()];
    if (!only.first_launch_ms) return "No kernel was launched in the first run.";
    return "The first kernel was launched " + format_duration(*only.first_launch_ms) + " after the first event.";
  }
  std::string text = "The first kernel was launched after " + format_duration(*cold->first_launch_ms) +
                     " cold and after " + format_duration(*warm->first_launch_ms) + " warm";
  if (*cold->first_launch_ms > 1.05 * *warm->first_launch_ms && *warm->first_launch_ms > 0) {
    text += ": " + times_text(*cold->first_launch_ms, *warm->first_launch_ms) + " times faster";
  }
  return text + '.';
}

void put_fact(Html& to, const std::string& figure, const std::string& words) {
  to.open("div").put("dt", words).put("dd", figure).close("div");
}

std::string hits_text(const Run& run) {
  std::string text;
  for (const Tier& tier : run.tiers) {
    if (tier.name != "compiled") text += (text.empty() ? "" : ", ") + std::to_string(tier.count) + ' ' + tier.name;
  }
  return text.empty() ? "none" : text;
}

void put_steps_bar(Html& to, const std::vector<Phase>& steps, double start, double whole, const std::string& about) {
  to.open("div", {{"class", "bar"}, {"role", "img"}, {"aria-label", about}});
  for (const Phase& step : steps) {
    to.put("i", {{"class", std::string("mark ") + color_of(step.kind)},
                 {"style", span_style(step.start_ms - start, step.ms, whole)},
                 {"title", std::string(display_name(step.kind)) + ": " + format_duration(step.ms)}});
  }
  to.close("div");
}

// Writes the phases of the unit that was launched first, as a bar and as a list.
void put_chain(Html& to, const Run& run) {
  if (!run.first) {
    to.put("p", {{"class", "note"}}, "No launch in this trace belongs to a unit, so the first call cannot be shown.");
    return;
  }
  const UnitTimeline& timeline = run.timelines[*run.first];
  to.open("p", {{"class", "chain-of"}}).text("First call: ").put("code", timeline.unit);
  to.text(" · " + format_duration(timeline.total_ms()) + " from request to launch").close("p");
  put_steps_bar(to, timeline.steps, timeline.start_ms, timeline.total_ms(), "Phases of the first call");
  to.open("ol", {{"class", "chain"}}).open("li", {{"data-step", "request"}});
  to.put("i", {{"class", "key request"}})
      .put("span", "request")
      .put("b", "at " + format_duration(timeline.start_ms))
      .close("li");
  for (const Phase& step : timeline.steps) {
    to.open("li", {{"data-step", to_string(step.kind)}});
    to.put("i", {{"class", std::string("key ") + color_of(step.kind)}}).put("span", display_name(step.kind));
    to.put("b", format_duration(step.ms)).close("li");
  }
  to.close("ol");
  if (timeline.waited_ms > 0) {
    to.put("p", {{"class", "note"}}, "A caller waited for " + format_duration(timeline.waited_ms) + " of this time.");
  }
}

void put_run(Html& to, const Run& run, double longest) {
  to.open("article", {{"class", "run"}});
  to.open("header").open("h3");
  put_label(to, run);
  to.text(" ").put("span", {{"class", "file"}}, run.file.substr(run.file.rfind('/') + 1)).close("h3");
  to.open("p", {{"class", "figure"}});
  to.put("b", run.first_launch_ms ? format_duration(*run.first_launch_ms) : "no launch");
  to.put("span", run.first_launch_ms ? "until the first kernel was launched" : "in this trace")
      .close("p")
      .close("header");
  const double first = run.first_launch_ms.value_or(0);
  to.open("div",
          {{"class", "bar scale"}, {"role", "img"}, {"aria-label", "Compared with the slowest run of this program"}});
  to.put("i", {{"class", "mark first"},
               {"style", span_style(0, first, longest)},
               {"title", format_duration(first) + " until the first launch"}});
  to.close("div");
  to.open("dl", {{"class", "facts"}});
  put_fact(to, format_duration(run.waited_ms), "time waited");
  put_fact(to, run.compiles == 0 ? "none" : std::to_string(run.compiles) + " in " + format_duration(run.compile_ms),
           "compiles");
  put_fact(to, hits_text(run), "hits");
  put_fact(to, run.loads == 0 ? "none" : std::to_string(run.loads) + " in " + format_duration(run.load_ms), "loads");
  to.close("dl");
  put_chain(to, run);
  to.close("article");
}

double ready_ms(const UnitTimeline& timeline) {
  double ms = 0;
  for (const Phase::Kind kind :
       {Phase::Kind::Claim, Phase::Kind::Find, Phase::Kind::Compile, Phase::Kind::Publish, Phase::Kind::Load}) {
    ms += timeline.ms_of(kind);
  }
  return ms;
}

// Returns the phases of a unit without idle times, one after the other.
std::vector<Phase> work_on(const UnitTimeline& timeline) {
  std::vector<Phase> steps;
  double at = 0;
  for (const Phase& step : timeline.steps) {
    if (std::string_view(color_of(step.kind)) == "idle" || step.kind == Phase::Kind::Launch) continue;
    steps.push_back({step.kind, at, step.ms});
    at += step.ms;
  }
  return steps;
}

using UnitName = std::pair<std::string, std::string>;  // unit and target

struct UnitRow {
  UnitName name;
  std::vector<const UnitTimeline*> timelines;  // one per run
  double longest = 0;
};

std::vector<UnitRow> rows_of(const Model& model, const std::vector<std::size_t>& runs) {
  std::map<UnitName, UnitRow> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const UnitTimeline& timeline : model.runs[runs[i]].timelines) {
      UnitRow& row = rows[{timeline.unit, timeline.target}];
      row.name = {timeline.unit, timeline.target};
      row.timelines.resize(runs.size());
      if (row.timelines[i] != nullptr && ready_ms(*row.timelines[i]) > ready_ms(timeline)) continue;
      row.timelines[i] = &timeline;
      row.longest = std::max(row.longest, ready_ms(timeline));
    }
  }
  std::vector<UnitRow> all;
  for (auto& [name, row] : rows) all.push_back(std::move(row));
  std::stable_sort(all.begin(), all.end(), [](const UnitRow& a, const UnitRow& b) { return a.longest > b.longest; });
  return all;
}

void put_unit_row(Html& to, const UnitRow& row, double whole) {
  to.open("tr").open("th", {{"scope", "row"}}).put("code", row.name.first);
  to.put("small", row.name.second).close("th");
  for (const UnitTimeline* timeline : row.timelines) {
    to.open("td");
    if (timeline == nullptr) {
      to.put("span", {{"class", "note"}}, "not in this run");
    } else {
      to.open("span", {{"class", "origin"}}).text((timeline->origin.empty() ? "no result" : timeline->origin) + " · ");
      to.put("b", format_duration(ready_ms(*timeline))).close("span");
      put_steps_bar(to, work_on(*timeline), 0, whole, "phases of this unit");
    }
    to.close("td");
  }
  to.close("tr");
}

void put_unit_table(Html& to, const Model& model, const Program& program) {
  std::vector<std::size_t> runs = program.runs;
  if (runs.size() > kMaxRunsBeside) runs.resize(kMaxRunsBeside);
  const std::vector<UnitRow> rows = rows_of(model, runs);
  if (rows.empty()) return;
  to.put("h3", program.name).open("div", {{"class", "table"}}).open("table", {{"class", "units"}});
  to.open("thead").open("tr").put("th", {{"scope", "col"}}, "unit");
  for (const std::size_t run : runs) {
    to.open("th", {{"scope", "col"}});
    put_label(to, model.runs[run]);
    to.close("th");
  }
  to.close("tr").close("thead").open("tbody");
  const std::size_t shown = std::min(rows.size(), kMaxUnits);
  for (std::size_t i = 0; i < shown; ++i) put_unit_row(to, rows[i], rows.front().longest);
  to.close("tbody").close("table").close("div");
  put_more(to, shown, rows.size(), "units");
  if (runs.size() < program.runs.size()) put_more(to, runs.size(), program.runs.size(), "runs");
}

}  // namespace

void put_programs(Html& to, const Model& model) {
  for (const Program& program : model.programs) {
    double longest = 0;
    for (const std::size_t run : program.runs) longest = std::max(longest, model.runs[run].first_launch_ms.value_or(0));
    to.open("section", {{"class", "program"}});
    to.put("h2", program.name).put("p", {{"class", "sentence"}}, sentence_of(model, program));
    to.open("div", {{"class", "runs"}});
    for (const std::size_t run : program.runs) put_run(to, model.runs[run], longest);
    to.close("div").close("section");
  }
}

void put_units(Html& to, const Model& model) {
  to.open("section", {{"id", "units"}}).put("h2", "Units by run");
  to.put("p", {{"class", "about"}},
         "Work on each unit until it could be launched: lookup or compile, publish, load. Idle times are not included. "
         "The bars of one program have the same scale.");
  for (const Program& program : model.programs) put_unit_table(to, model, program);
  to.close("section");
}

}  // namespace kiln::report
