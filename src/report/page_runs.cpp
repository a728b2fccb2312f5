// Runs side by side, and units likewise.
#include <algorithm>
#include <map>

#include "report/page.hpp"

namespace kiln::report {
namespace {

constexpr std::size_t kMostUnits = 40;
constexpr std::size_t kMostRunsBeside = 4;

std::string times_text(double larger, double smaller) {
  const double times = larger / smaller;
  char text[32];
  std::snprintf(text, sizeof text, times >= 10 ? "%.0f" : "%.1f", times);
  return text;
}

// What the two runs come to, in a sentence.
std::string sentence_of(const Model& model, const Program& program) {
  const Run* cold = program.cold ? &model.runs[*program.cold] : nullptr;
  const Run* warm = program.warm ? &model.runs[*program.warm] : nullptr;
  if (cold == nullptr || warm == nullptr || !cold->first_launch_ms || !warm->first_launch_ms) {
    const Run& only = model.runs[program.runs.front()];
    if (!only.first_launch_ms) return "No kernel was launched in the first of its runs here.";
    return "The first kernel was launched " + time_words(*only.first_launch_ms) + " after the first event.";
  }
  std::string text = "The first kernel was launched after " + time_words(*cold->first_launch_ms) + " cold and after " +
                     time_words(*warm->first_launch_ms) + " warm";
  if (*cold->first_launch_ms > 1.05 * *warm->first_launch_ms && *warm->first_launch_ms > 0) {
    text += ": " + times_text(*cold->first_launch_ms, *warm->first_launch_ms) + " times sooner";
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

void put_steps_bar(Html& to, const std::vector<Step>& steps, double start, double whole, const std::string& about) {
  to.open("div", {{"class", "bar"}, {"role", "img"}, {"aria-label", about}});
  for (const Step& step : steps) {
    to.put("i", {{"class", std::string("mark ") + colour_of(step.kind)},
                 {"style", span_style(step.start_ms - start, step.ms, whole)},
                 {"title", std::string(words_for(step.kind)) + ": " + time_words(step.ms)}});
  }
  to.close("div");
}

// The way of the unit that was launched first: its steps as one line, and below it in words.
void put_chain(Html& to, const Run& run) {
  if (!run.first) {
    to.put("p", {{"class", "note"}}, "No launch in this trace belongs to a unit, so no first call can be followed.");
    return;
  }
  const Way& way = run.ways[*run.first];
  to.open("p", {{"class", "chain-of"}}).text("First call: ").put("code", way.unit);
  to.text(" · " + time_words(way.total_ms()) + " from request to launch").close("p");
  put_steps_bar(to, way.steps, way.start_ms, way.total_ms(), "What the first call waited for");
  to.open("ol", {{"class", "chain"}}).open("li", {{"data-step", "request"}});
  to.put("i", {{"class", "key request"}}).put("span", "request").put("b", "at " + time_words(way.start_ms)).close("li");
  for (const Step& step : way.steps) {
    to.open("li", {{"data-step", to_string(step.kind)}});
    to.put("i", {{"class", std::string("key ") + colour_of(step.kind)}}).put("span", words_for(step.kind));
    to.put("b", time_words(step.ms)).close("li");
  }
  to.close("ol");
  if (way.waited_ms > 0) {
    to.put("p", {{"class", "note"}}, "A caller stood still for " + time_words(way.waited_ms) + " of it.");
  }
}

void put_run(Html& to, const Run& run, double longest) {
  to.open("article", {{"class", "run"}});
  to.open("header").open("h3");
  put_label(to, run);
  to.text(" ").put("span", {{"class", "file"}}, run.file.substr(run.file.rfind('/') + 1)).close("h3");
  to.open("p", {{"class", "figure"}});
  to.put("b", run.first_launch_ms ? time_words(*run.first_launch_ms) : "no launch");
  to.put("span", run.first_launch_ms ? "until the first kernel was launched" : "in this trace")
      .close("p")
      .close("header");
  const double first = run.first_launch_ms.value_or(0);
  to.open("div", {{"class", "bar scale"}, {"role", "img"}, {"aria-label", "Beside the slowest run of this program"}});
  to.put("i", {{"class", "mark first"},
               {"style", span_style(0, first, longest)},
               {"title", time_words(first) + " until the first launch"}});
  to.close("div");
  to.open("dl", {{"class", "facts"}});
  put_fact(to, time_words(run.waited_ms), "the program stood still");
  put_fact(to, run.compiles == 0 ? "none" : std::to_string(run.compiles) + " in " + time_words(run.compile_ms),
           "compiles");
  put_fact(to, hits_text(run), "hits");
  put_fact(to, run.loads == 0 ? "none" : std::to_string(run.loads) + " in " + time_words(run.load_ms), "loads");
  to.close("dl");
  put_chain(to, run);
  to.close("article");
}

double ready_ms(const Way& way) {
  double ms = 0;
  for (const Step::Kind kind :
       {Step::Kind::Claim, Step::Kind::Find, Step::Kind::Compile, Step::Kind::Publish, Step::Kind::Load}) {
    ms += way.ms_of(kind);
  }
  return ms;
}

// What was done for a unit, without the times at which nobody did anything, put one behind the other.
std::vector<Step> work_on(const Way& way) {
  std::vector<Step> steps;
  double at = 0;
  for (const Step& step : way.steps) {
    if (std::string_view(colour_of(step.kind)) == "idle" || step.kind == Step::Kind::Launch) continue;
    steps.push_back({step.kind, at, step.ms});
    at += step.ms;
  }
  return steps;
}

using UnitName = std::pair<std::string, std::string>;  // and target

struct UnitRow {
  UnitName name;
  std::vector<const Way*> ways;  // one for each run
  double longest = 0;
};

std::vector<UnitRow> rows_of(const Model& model, const std::vector<std::size_t>& runs) {
  std::map<UnitName, UnitRow> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const Way& way : model.runs[runs[i]].ways) {
      UnitRow& row = rows[{way.unit, way.target}];
      row.name = {way.unit, way.target};
      row.ways.resize(runs.size());
      if (row.ways[i] != nullptr && ready_ms(*row.ways[i]) > ready_ms(way)) continue;
      row.ways[i] = &way;
      row.longest = std::max(row.longest, ready_ms(way));
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
  for (const Way* way : row.ways) {
    to.open("td");
    if (way == nullptr) {
      to.put("span", {{"class", "note"}}, "not in this run");
    } else {
      to.open("span", {{"class", "origin"}}).text((way->origin.empty() ? "nothing came of it" : way->origin) + " · ");
      to.put("b", time_words(ready_ms(*way))).close("span");
      put_steps_bar(to, work_on(*way), 0, whole, "what was done for it");
    }
    to.close("td");
  }
  to.close("tr");
}

void put_unit_table(Html& to, const Model& model, const Program& program) {
  std::vector<std::size_t> runs = program.runs;
  if (runs.size() > kMostRunsBeside) runs.resize(kMostRunsBeside);
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
  const std::size_t shown = std::min(rows.size(), kMostUnits);
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
  to.open("section", {{"id", "units"}}).put("h2", "Units, run beside run");
  to.put("p", {{"class", "about"}},
         "What was done for each unit until it could be launched: found or compiled, published, loaded. Times in which "
         "nobody worked on it are left out; bars of one program have one scale.");
  for (const Program& program : model.programs) put_unit_table(to, model, program);
  to.close("section");
}

}  // namespace kiln::report
