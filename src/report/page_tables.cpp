// What the page has as tables.
#include <algorithm>

#include "report/page.hpp"

namespace kiln::report {
namespace {

constexpr std::size_t kMostWaits = 12;
constexpr std::size_t kMostRows = 50;

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
    case Event::Kind::HotCompile: return "a compile";
    case Event::Kind::Waited: return "another process";
    case Event::Kind::LeaseWaited: return "another host";
    case Event::Kind::Synchronised: return "a stream";
    case Event::Kind::Hit: return "a look-up";
    case Event::Kind::Loaded: return "the driver's load";
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
  to.open("td", {{"class", "long"}}).put("b", time_words(wait.ms)).open("div", {{"class", "bar"}});
  to.put("i", {{"class", "mark wait"}, {"style", span_style(0, wait.ms, longest)}}).close("div").close("td");
  put_run_cell(to, run);
  to.open("td", {{"data-label", "thread"}})
      .text(wait.who + (wait.background ? " (in the background)" : ""))
      .close("td");
  to.open("td").text(waited_for(wait.kind));
  if (!wait.unit.empty()) to.text(": ").put("code", wait.unit);
  to.close("td").put("td", wait.why);
  to.put("td", {{"class", "at"}, {"data-label", "at"}}, time_words(wait.start_ms)).close("tr");
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
    to.text(" in " + time_words(tier.ms)).close("li");
  }
  if (run.tiers.empty()) to.put("li", {{"class", "note"}}, "no unit was asked for");
  to.close("ul").close("td").close("tr");
}

void put_finding(Html& to, const audit::Finding& finding) {
  std::string severity = to_string(finding.rule->severity);
  std::transform(severity.begin(), severity.end(), severity.begin(), [](unsigned char c) { return std::tolower(c); });
  to.open("li").put("span", {{"class", "chip severity " + severity}}, severity);
  to.text(" ").put("b", finding.rule->name).text(finding.operation.empty() ? "" : " in " + finding.operation);
  to.text(finding.stage.empty() ? "" : ", stage " + finding.stage);
  to.put("p", finding.text).put("p", {{"class", "note"}}, std::string("To do: ") + finding.rule->advice).close("li");
}

std::size_t in_all(const std::vector<Run>& runs, std::size_t (*count)(const Run&)) {
  std::size_t all = 0;
  for (const Run& run : runs) all += count(run);
  return all;
}

}  // namespace

void put_waits(Html& to, const Model& model) {
  to.open("section", {{"id", "waits"}}).put("h2", "The longest waits");
  to.put(
      "p", {{"class", "about"}},
      "Who stood still, for what and why. Waiting for a compile, a process, a host or a stream counts on every thread; "
      "look-ups, loads and copies where a thread of the program did them.");
  if (model.waits.empty()) {
    to.put("p", "Nobody waited for anything that the traces tell of.").close("section");
    return;
  }
  open_table(to, "waits", {"", "how long", "run", "who", "for what", "why", "when"});
  const std::size_t shown = std::min(model.waits.size(), kMostWaits);
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
  to.open("section", {{"id", "misses"}}).put("h2", "Misses, and why");
  const std::size_t all = in_all(model.runs, [](const Run& run) { return run.misses.size(); });
  if (all == 0) {
    to.put("p", "None: every unit that was asked for was found.").close("section");
    return;
  }
  open_table(to, "misses", {"run", "unit", "why no tier had it", "what came of it"});
  std::size_t shown = 0;
  for (const Run& run : model.runs) {
    for (const Miss& miss : run.misses) {
      if (shown++ >= kMostRows) continue;
      to.open("tr");
      put_run_cell(to, run);
      to.open("td").put("code", miss.unit).put("small", miss.target).close("td");
      to.put("td", miss.why.empty() ? "The trace does not say; 'kiln explain' of the unit does." : miss.why);
      std::string end = miss.end.empty() ? "nothing in this trace" : miss.end;
      if (miss.cost_ms > 0) end += " in " + time_words(miss.cost_ms);
      to.put("td", end).close("tr");
    }
  }
  close_table(to);
  put_more(to, std::min(shown, kMostRows), all, "misses");
  to.close("section");
}

void put_audit(Html& to, const Model& model) {
  to.open("section", {{"id", "audit"}}).put("h2", "What the audit found");
  to.put("p", {{"class", "about"}},
         "Whether each path is one of the GPU's: 'kiln audit' has the same with all figures.");
  for (const Run& run : model.runs) {
    to.open("article", {{"class", "audit"}}).open("h3");
    put_label(to, run);
    to.text(' ' + run.process).close("h3");
    if (run.audit.clean()) to.put("p", {{"class", "clean"}}, "Nothing was found.");
    to.open("ul", {{"class", "findings"}});
    const std::size_t shown = std::min(run.audit.findings.size(), kMostRows);
    for (std::size_t i = 0; i < shown; ++i) put_finding(to, run.audit.findings[i]);
    to.close("ul");
    put_more(to, shown, run.audit.findings.size(), "findings");
    to.open("dl", {{"class", "answers"}}).put("dt", "What makes it behave like CPU code?").put("dd", run.audit.cause);
    to.put("dt", "What is the smallest change that moves it back?").put("dd", run.audit.change).close("dl");
    to.close("article");
  }
  to.close("section");
}

void put_troubles(Html& to, const Model& model) {
  const std::size_t all = in_all(model.runs, [](const Run& run) { return run.troubles.size(); });
  if (all == 0) return;
  to.open("section", {{"id", "troubles"}}).put("h2", "What went another way than it should");
  open_table(to, "troubles", {"run", "what", "of", "why", "when"});
  std::size_t shown = 0;
  for (const Run& run : model.runs) {
    for (const Trouble& trouble : run.troubles) {
      if (shown++ >= kMostRows) continue;
      to.open("tr");
      put_run_cell(to, run);
      to.put("td", words_for(trouble.kind)).open("td").put("code", trouble.unit).close("td").put("td", trouble.message);
      to.put("td", {{"class", "at"}}, time_words(trouble.at_ms)).close("tr");
    }
  }
  close_table(to);
  put_more(to, std::min(shown, kMostRows), all, "such events");
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
    if (run.dropped != 0) events += "; " + std::to_string(run.dropped) + " later ones are missing: it was full";
    if (run.not_understood != 0)
      events += "; " + std::to_string(run.not_understood) + " of kinds that this kiln does not know";
    to.put("td", events).close("tr");
  }
  close_table(to);
  to.close("section");
}

}  // namespace kiln::report
