// The tables of the page.
#include <algorithm>

#include "analysis/report/page.hpp"

namespace kiln::report {
namespace {

constexpr std::size_t kMaxWaits = 12;
constexpr std::size_t kMaxRows = 50;

void open_table(Html& to, const char* name, std::initializer_list<const char*> columns) {
  to.open("div", {{"class", "table"}}).open("table", {{"class", name}}).open("thead").open("tr");
  for (const char* column : columns) to.put("th", {{"scope", "col"}}, column);
  to.close("tr").close("thead").open("tbody");
}

void close_table(Html& to) { to.close("tbody").close("table").close("div"); }

void put_run_cell(Html& to, const Run& run) {
  to.open("td", {{"class", "of-run"}});
  put_label(to, run);
  to.text(' ' + run.process).close("td");
}

std::string number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

const char* waited_for(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::BlockingCompile: return "a compile";
    case Event::Kind::ClaimWaited: return "another process";
    case Event::Kind::LeaseWaited: return "another host";
    case Event::Kind::Synchronized: return "a stream";
    case Event::Kind::Hit: return "a lookup";
    case Event::Kind::Loaded: return "a driver load";
    case Event::Kind::Copied: return "a copy";
    default: return "";
  }
}

void put_wait(Html& to, const Wait& wait, const Run& run, std::size_t rank, double longest) {
  to.open("tr", {{"data-event", std::to_string(wait.event)},
                 {"data-run", std::to_string(wait.run)},
                 {"data-ms", number_text(wait.ms)},
                 {"class", rank <= 3 ? "top" : ""}});
  to.put("td", {{"class", "rank"}}, std::to_string(rank));
  to.open("td", {{"class", "long"}}).put("b", format_duration(wait.ms)).open("div", {{"class", "bar"}});
  to.put("i", {{"class", "mark wait"}, {"style", span_style(0, wait.ms, longest)}}).close("div").close("td");
  put_run_cell(to, run);
  to.open("td", {{"data-label", "thread"}})
      .text(wait.who + (wait.background ? " (in the background)" : ""))
      .close("td");
  to.open("td").text(waited_for(wait.kind));
  if (!wait.unit.empty()) to.text(": ").put("code", wait.unit);
  to.close("td").put("td", wait.reason);
  to.put("td", {{"class", "at"}, {"data-label", "at"}}, format_duration(wait.start_ms)).close("tr");
}

void put_tier_row(Html& to, const Run& run) {
  std::uint64_t all = 0;
  for (const Tier& tier : run.tiers) all += tier.count;
  to.open("tr");
  put_run_cell(to, run);
  to.open("td").open("div", {{"class", "bar tiers"}, {"role", "img"}, {"aria-label", "shares of the tiers"}});
  std::uint64_t before = 0;
  for (const Tier& tier : run.tiers) {
    to.put("i", {{"class", tier.name == "compiled" ? "mark compile" : "mark find tier-" + tier.name},
                 {"style",
                  span_style(static_cast<double>(before), static_cast<double>(tier.count), static_cast<double>(all))},
                 {"title", tier.name + ": " + std::to_string(tier.count)}});
    before += tier.count;
  }
  to.close("div").open("ul", {{"class", "legend"}});
  for (const Tier& tier : run.tiers) {
    to.open("li").put("i", {{"class", tier.name == "compiled" ? "key compile" : "key find"}});
    to.text(tier.name + ' ').put("b", std::to_string(tier.count));
    to.text(" in " + format_duration(tier.ms)).close("li");
  }
  if (run.tiers.empty()) to.put("li", {{"class", "note"}}, "no unit was requested");
  to.close("ul").close("td").close("tr");
}

void put_finding(Html& to, const audit::Finding& finding) {
  std::string severity = to_string(finding.rule->severity);
  std::transform(severity.begin(), severity.end(), severity.begin(), [](unsigned char c) { return std::tolower(c); });
  to.open("li").put("span", {{"class", "chip severity " + severity}}, severity);
  to.text(" ").put("b", finding.rule->name).text(finding.operation.empty() ? "" : " in " + finding.operation);
  to.text(finding.stage.empty() ? "" : ", stage " + finding.stage);
  to.put("p", finding.text).put("p", {{"class", "note"}}, std::string("Fix: ") + finding.rule->advice).close("li");
}

std::size_t in_all(const std::vector<Run>& runs, std::size_t (*count)(const Run&)) {
  std::size_t all = 0;
  for (const Run& run : runs) all += count(run);
  return all;
}

}  // namespace

void put_waits(Html& to, const Model& model) {
  to.open("section", {{"id", "waits"}}).put("h2", "The longest waits");
  to.put("p", {{"class", "about"}},
         "Waits and their causes. Waits for a compile, a process, a host or a stream count on every thread; "
         "lookups, loads and copies count only on threads of the program.");
  if (model.waits.empty()) {
    to.put("p", "The traces contain no waits.").close("section");
    return;
  }
  open_table(to, "waits", {"", "duration", "run", "thread", "waited for", "cause", "at"});
  const std::size_t shown = std::min(model.waits.size(), kMaxWaits);
  for (std::size_t i = 0; i < shown; ++i) {
    const Wait& wait = model.waits[i];
    put_wait(to, wait, model.runs[wait.run], i + 1, model.waits.front().ms);
  }
  close_table(to);
  put_more(to, shown, model.waits.size(), "waits");
  to.close("section");
}

void put_tiers(Html& to, const Model& model) {
  to.open("section", {{"id", "tiers"}}).put("h2", "Where artifacts came from");
  open_table(to, "tiers", {"run", "hits by tier, and compiles"});
  for (const Run& run : model.runs) put_tier_row(to, run);
  close_table(to);
  to.close("section");
}

void put_misses(Html& to, const Model& model) {
  to.open("section", {{"id", "misses"}}).put("h2", "Cache misses");
  const std::size_t all = in_all(model.runs, [](const Run& run) { return run.misses.size(); });
  if (all == 0) {
    to.put("p", "None: every requested unit was found.").close("section");
    return;
  }
  open_table(to, "misses", {"run", "unit", "cause", "result"});
  std::size_t shown = 0;
  for (const Run& run : model.runs) {
    for (const Miss& miss : run.misses) {
      if (shown++ >= kMaxRows) continue;
      to.open("tr");
      put_run_cell(to, run);
      to.open("td").put("code", miss.unit).put("small", miss.target).close("td");
      to.put("td", miss.reason.empty() ? "Not recorded; 'kiln explain' shows it." : miss.reason);
      std::string end = miss.end.empty() ? "none in this trace" : miss.end;
      if (miss.cost_ms > 0) end += " in " + format_duration(miss.cost_ms);
      to.put("td", end).close("tr");
    }
  }
  close_table(to);
  put_more(to, std::min(shown, kMaxRows), all, "misses");
  to.close("section");
}

void put_audit(Html& to, const Model& model) {
  to.open("section", {{"id", "audit"}}).put("h2", "Audit");
  to.put("p", {{"class", "about"}},
         "Host fallbacks, copies and synchronization per run; 'kiln audit' prints all values.");
  for (const Run& run : model.runs) {
    to.open("article", {{"class", "audit"}}).open("h3");
    put_label(to, run);
    to.text(' ' + run.process).close("h3");
    if (run.audit.clean()) to.put("p", {{"class", "clean"}}, "No findings.");
    to.open("ul", {{"class", "findings"}});
    const std::size_t shown = std::min(run.audit.findings.size(), kMaxRows);
    for (std::size_t i = 0; i < shown; ++i) put_finding(to, run.audit.findings[i]);
    to.close("ul");
    put_more(to, shown, run.audit.findings.size(), "findings");
    to.open("dl", {{"class", "answers"}}).put("dt", "What makes it behave like CPU code?").put("dd", run.audit.cause);
    to.put("dt", "What is the smallest change that moves it back?").put("dd", run.audit.change).close("dl");
    to.close("article");
  }
  to.close("section");
}

void put_problems(Html& to, const Model& model) {
  const std::size_t all = in_all(model.runs, [](const Run& run) { return run.problems.size(); });
  if (all == 0) return;
  to.open("section", {{"id", "troubles"}}).put("h2", "Problems");
  open_table(to, "troubles", {"run", "event", "unit", "message", "at"});
  std::size_t shown = 0;
  for (const Run& run : model.runs) {
    for (const Problem& problem : run.problems) {
      if (shown++ >= kMaxRows) continue;
      to.open("tr");
      put_run_cell(to, run);
      to.put("td", display_name(problem.kind))
          .open("td")
          .put("code", problem.unit)
          .close("td")
          .put("td", problem.message);
      to.put("td", {{"class", "at"}}, format_duration(problem.at_ms)).close("tr");
    }
  }
  close_table(to);
  put_more(to, std::min(shown, kMaxRows), all, "problems");
  to.close("section");
}

void put_traces(Html& to, const Model& model) {
  to.open("section", {{"id", "traces"}}).put("h2", "The traces");
  open_table(to, "traces", {"run", "file", "command", "date", "events"});
  for (const Run& run : model.runs) {
    to.open("tr");
    put_run_cell(to, run);
    to.open("td").put("code", run.file).close("td").open("td").put("code", run.command).close("td").put("td", run.date);
    std::string events = std::to_string(run.events);
    if (run.dropped != 0)
      events += "; " + std::to_string(run.dropped) + " later events are missing because the trace was full";
    if (run.not_understood != 0) events += "; " + std::to_string(run.not_understood) + " of unknown kinds";
    to.put("td", events).close("tr");
  }
  close_table(to);
  to.close("section");
}

}  // namespace kiln::report
