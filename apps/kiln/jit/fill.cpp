// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/fill.hpp"

#include <algorithm>
#include <map>

#include "apps/kiln/jit/entry_pack.hpp"
#include "apps/kiln/jit/filled_record.hpp"
#include "apps/kiln/jit/place.hpp"

namespace kiln::jit {
namespace {

using FillState = FillOutcome::State;

/// A line of the union of all lists.
struct WantedEntry {
  const EntryList::Line* line = nullptr;
  const std::string* source = nullptr;
};

// The lines of each path, in the order of the lists. The first one whose entry a tier has decides.
std::map<std::string_view, std::vector<WantedEntry>> union_of(const std::vector<FoundList>& lists,
                                                              std::vector<std::string>& conflicts) {
  std::map<std::string_view, std::vector<WantedEntry>> wanted;
  for (const FoundList& found : lists) {
    for (const EntryList::Line& line : found.list.lines) {
      std::vector<WantedEntry>& same = wanted[line.path];
      const auto has_digest = [&](const WantedEntry& each) { return each.line->digest == line.digest; };
      if (std::any_of(same.begin(), same.end(), has_digest)) continue;
      if (same.size() == 1) conflicts.push_back(line.path);
      same.push_back({&line, &found.source});
    }
  }
  return wanted;
}

/// Fills one root.
class RootFiller {
 public:
  RootFiller(const JitTiers& tiers, const DetectedSystem& system, EntryPlacer& placer, const Limits& limits,
             const Deadline& deadline, std::uint64_t used, FilledRecord& record, FillReport& report)
      : tiers_(tiers), system_(system), placer_(placer), limits_(limits), deadline_(deadline), used_(used),
        record_(record), report_(report) {}

  void add(const std::vector<WantedEntry>& wanted) {
    FillOutcome outcome;
    for (const WantedEntry& each : wanted) {
      outcome = {};
      outcome.path = each.line->path;
      outcome.source = *each.source;
      place(*each.line, outcome);
      if (outcome.state != FillState::Missing) break;
    }
    report_.bytes += outcome.bytes;
    report_.entries.push_back(std::move(outcome));
  }

 private:
  void place(const EntryList::Line& line, FillOutcome& outcome) {
    const auto end = [&](FillState state, std::string reason) {
      outcome.state = state;
      outcome.reason = std::move(reason);
    };
    const Rule& rule = *system_.rule;
    if (!rule.is_entry(line.path)) return end(FillState::Rejected, "the path matches no pattern of the rule");
    if (placer_.is_present(line.path)) return end(FillState::Present, {});
    if (line.size > limits_.entry_bytes) return end(FillState::LeftOut, "larger than the limit of one entry");
    if (report_.bytes + line.size > limits_.system_bytes) return end(FillState::LeftOut, "limit of the system reached");
    if (used_ + report_.bytes + line.size > limits_.total_bytes)
      return end(FillState::LeftOut, "limit of all systems reached");
    if (deadline_.remaining().count() == 0) return end(FillState::LeftOut, "time limit reached");
    const auto bytes = tiers_.entry(system_.system, line.digest, deadline_);
    if (!bytes) return end(FillState::Missing, "no tier has the entry");
    if (bytes->size() != line.size) return end(FillState::Rejected, "its size is not that of the list");
    const auto pack = decode_pack(bytes->view());
    if (!pack) return end(FillState::Rejected, pack.error().message);
    if (Status checked = check_pack(rule, line.path, *pack); !checked)
      return end(FillState::Rejected, checked.error().message);
    if (Status noted = record_.add(placer_.root(), line.path, outcome.source != kOwnSource); !noted)
      return end(FillState::LeftOut, noted.error().message);
    const auto placed = placer_.place(line.path, *pack, deadline_);
    if (!placed) {
      record_.remove(placer_.root(), line.path);
      const bool late = placed.error().code == Code::TimedOut;
      return end(late ? FillState::LeftOut : FillState::Rejected, placed.error().message);
    }
    outcome.state = *placed ? FillState::Placed : FillState::Present;
    outcome.bytes = *placed ? line.size : 0;
  }

  const JitTiers& tiers_;
  const DetectedSystem& system_;
  EntryPlacer& placer_;
  const Limits& limits_;
  const Deadline& deadline_;
  const std::uint64_t used_;
  FilledRecord& record_;
  FillReport& report_;
};

}  // namespace

std::size_t FillReport::count(FillOutcome::State state) const {
  return static_cast<std::size_t>(
      std::count_if(entries.begin(), entries.end(), [&](const FillOutcome& each) { return each.state == state; }));
}

FillReport fill(const JitTiers& tiers, const DetectedSystem& system, const std::string& root, const Limits& limits,
                const Deadline& deadline, std::uint64_t used) {
  FillReport report;
  report.system = system.system;
  report.root = root;
  const std::vector<FoundList> lists = tiers.lists(system, deadline, report.problems);
  const auto wanted = union_of(lists, report.conflicts);
  if (wanted.empty()) return report;
  auto opened = open_root(root, true);
  if (!opened) {
    report.error = opened.error().message;
    return report;
  }
  auto record = FilledRecord::read(opened->get());
  if (!record) {
    report.error = record.error().message;
    return report;
  }
  EntryPlacer placer(std::move(*opened), root);
  RootFiller filler(tiers, system, placer, limits, deadline, used, *record, report);
  for (const auto& [path, entries] : wanted) filler.add(entries);
  return report;
}

}  // namespace kiln::jit
