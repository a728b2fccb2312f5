// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/jit_report.hpp"

#include "apps/kiln/output/json_common.hpp"
#include "base/format.hpp"

namespace kiln::cli {
namespace {

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

std::string summary(const jit::FillReport& report) {
  if (!report.error.empty()) return report.system + ": " + report.error;
  return report.system + ": " + state_counts(report, kFillStates) +
         (report.bytes != 0 ? " (" + format_bytes(report.bytes) + ")" : "");
}

std::string summary(const jit::PublishReport& report) {
  if (!report.error.empty()) return report.system + ": " + report.error;
  const std::uint64_t bytes = published_bytes(report);
  return report.system + ": " + state_counts(report, kPublishStates) +
         (bytes != 0 ? " (" + format_bytes(bytes) + ")" : "");
}

}  // namespace kiln::cli
