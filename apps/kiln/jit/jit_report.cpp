// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/jit_report.hpp"

#include <algorithm>

#include "analysis/report/jit_events.hpp"
#include "apps/kiln/output/json_common.hpp"
#include "base/format.hpp"

namespace kiln::cli {
namespace {

// Per system and pass; the counts are those of all entries.
constexpr std::size_t kMaxEntryEvents = 100;

using Filled = jit::FillOutcome::State;
using PublishedState = jit::PublishOutcome::State;

constexpr Filled kFillStates[] = {Filled::Placed, Filled::Present, Filled::Missing, Filled::Rejected, Filled::LeftOut};
constexpr PublishedState kPublishStates[] = {PublishedState::Published, PublishedState::Known,
                                             PublishedState::Incomplete, PublishedState::Changing,
                                             PublishedState::Refused};

// Returns the counts of all states by name.
template <class Report, class States>
Json counts_of(const Report& report, const States& states) {
  Json counts = Json::object();
  for (const auto state : states) counts[to_string(state)] = report.count(state);
  return counts;
}

template <class Report, class States>
std::string state_counts(const Report& report, const States& states) {
  std::string text;
  for (const auto state : states) {
    const std::size_t count = report.count(state);
    if (count == 0) continue;
    std::string name = to_string(state);
    if (name == "left_out") name = "left out";
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  }
  return text.empty() ? "no entries" : text;
}

// The entries with a reason: the others are only counted.
template <class Report>
Json failed_entries(const Report& report) {
  Json entries = Json::array();
  for (const auto& entry : report.entries) {
    if (!entry.reason.empty())
      entries.push_back({{"path", entry.path}, {"state", to_string(entry.state)}, {"reason", entry.reason}});
  }
  return entries;
}

std::uint64_t published_bytes(const jit::PublishReport& report) {
  std::uint64_t bytes = 0;
  for (const jit::PublishOutcome& entry : report.entries) {
    if (entry.state == PublishedState::Published) bytes += entry.bytes;
  }
  return bytes;
}

template <class Report, class States>
std::string outcome_text(const Report& report, const States& states, std::uint64_t bytes) {
  if (!report.error.empty()) return report.error;
  return state_counts(report, states) + (bytes != 0 ? " (" + format_bytes(bytes) + ")" : "");
}
std::string outcome(const jit::FillReport& report) { return outcome_text(report, kFillStates, report.bytes); }
std::string outcome(const jit::PublishReport& report) {
  return outcome_text(report, kPublishStates, published_bytes(report));
}

// `toy: 2 entries were rejected, first 00aa: it is corrupt; use -v to show all`
template <class Report, class State>
std::string warning_about(const Report& report, State state) {
  const auto first = std::find_if(report.entries.begin(), report.entries.end(),
                                  [&](const auto& entry) { return entry.state == state; });
  if (first == report.entries.end()) return {};
  const std::size_t count = report.count(state);
  return report.system + ": " + std::to_string(count) + (count == 1 ? " entry was " : " entries were ") +
         to_string(state) + ", first " + first->path + ": " + first->reason + "; use -v to show all";
}

Event skipped(const std::string& system, const std::string& path, const char* state, const std::string& reason) {
  Event event = Event::of(report::kEntrySkipped);
  event.unit = path;
  event.target = system;
  event.selected = state;
  event.message = reason;
  return event;
}

template <class Report>
void emit_entries(const EventCallback& emit, const Report& report) {
  std::size_t emitted = 0;
  for (const auto& entry : report.entries) {
    if (entry.reason.empty()) continue;
    if (++emitted > kMaxEntryEvents) break;
    emit(skipped(report.system, entry.path, to_string(entry.state), entry.reason));
  }
}

template <class Report, class States>
Event event_of(const EventType& type, const Report& report, const States& states, double ms) {
  Event event = Event::of(type);
  event.unit = report.system;
  event.message = outcome(report);
  event.ms = ms;
  event.details.emplace_back("entries", std::to_string(report.entries.size()));
  for (const auto state : states) event.details.emplace_back(to_string(state), std::to_string(report.count(state)));
  return event;
}

}  // namespace

const char* to_string(jit::FillOutcome::State state) {
  switch (state) {
    case Filled::Placed: return "placed";
    case Filled::Present: return "present";
    case Filled::Missing: return "missing";
    case Filled::Rejected: return "rejected";
    case Filled::LeftOut: return "left_out";
  }
  return "";
}

const char* to_string(jit::PublishOutcome::State state) {
  switch (state) {
    case PublishedState::Published: return "published";
    case PublishedState::Known: return "known";
    case PublishedState::Incomplete: return "incomplete";
    case PublishedState::Changing: return "changing";
    case PublishedState::Refused: return "refused";
  }
  return "";
}

Json to_json(const jit::FillReport& report) {
  return {{"system", report.system},       {"root", report.root},
          {"error", report.error},         {"counts", counts_of(report, kFillStates)},
          {"bytes", report.bytes},         {"entries", failed_entries(report)},
          {"conflicts", report.conflicts}, {"problems", report.problems}};
}

Json to_json(const jit::PublishReport& report) {
  return {{"system", report.system},
          {"root", report.root},
          {"error", report.error},
          {"counts", counts_of(report, kPublishStates)},
          {"bytes", published_bytes(report)},
          {"entries", failed_entries(report)}};
}

Json to_json(const ListedSystem& listed) {
  const jit::SystemPlan& plan = listed.plan;
  const bool covered = plan.system.rule != nullptr;
  return {{"system", plan.system.system},
          {"version", plan.system.version},
          {"versions", covered ? plan.system.rule->versions.text() : ""},
          {"host_code", covered && plan.system.rule->host_code},
          {"evidence", covered && plan.system.rule->evidence == jit::Rule::Evidence::Source ? "source" : "run"},
          {"root", plan.root},
          {"entries", listed.entries},
          {"listed", listed.listed},
          {"skipped", plan.skipped}};
}

Json to_json(const ExplainedSystem& explained) {
  Json entries = Json::array();
  for (const ExplainedEntry& entry : explained.entries) {
    entries.push_back(
        {{"path", entry.path}, {"state", entry.state}, {"reason", entry.reason}, {"source", entry.source}});
  }
  return {{"system", explained.plan.system.system},
          {"root", explained.plan.root},
          {"skipped", explained.plan.skipped},
          {"entries", std::move(entries)},
          {"notes", explained.notes}};
}

Json skipped_json(const std::vector<jit::SystemPlan>& plans) {
  Json skipped = Json::array();
  for (const jit::SystemPlan& plan : plans) {
    if (!plan.skipped.empty()) skipped.push_back({{"system", plan.system.system}, {"reason", plan.skipped}});
  }
  return skipped;
}

std::string summary(const jit::FillReport& report) { return report.system + ": " + outcome(report); }
std::string summary(const jit::PublishReport& report) { return report.system + ": " + outcome(report); }

std::string warning(const jit::FillReport& report) { return warning_about(report, Filled::Rejected); }
std::string warning(const jit::PublishReport& report) { return warning_about(report, PublishedState::Refused); }

void emit_events(const EventCallback& emit, const jit::FillReport& report, double ms) {
  if (!emit) return;
  for (const std::string& problem : report.problems) emit(skipped(report.system, "", "list", problem));
  for (std::size_t i = 0; i < std::min(report.conflicts.size(), kMaxEntryEvents); ++i) {
    emit(skipped(report.system, report.conflicts[i], "conflict",
                 "two lists name different entries; the first one that a tier has is used"));
  }
  emit_entries(emit, report);
  Event event = event_of(report::kCacheFilled, report, kFillStates, ms);
  event.details.emplace_back("conflicts", std::to_string(report.conflicts.size()));
  event.bytes = report.bytes;
  emit(event);
}

void emit_events(const EventCallback& emit, const jit::PublishReport& report, double ms) {
  if (!emit) return;
  emit_entries(emit, report);
  Event event = event_of(report::kCachePublished, report, kPublishStates, ms);
  event.bytes = published_bytes(report);
  emit(event);
}

}  // namespace kiln::cli
