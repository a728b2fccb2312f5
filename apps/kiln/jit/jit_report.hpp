// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/kiln/jit/fill.hpp"
#include "apps/kiln/jit/plan.hpp"
#include "apps/kiln/jit/publish.hpp"
#include "apps/kiln/output/console.hpp"
#include "base/json.hpp"

namespace kiln::cli {

/// A system as `kiln jit list` shows it.
struct ListedSystem {
  jit::SystemPlan plan;
  std::size_t entries = 0;  ///< in the root
  std::size_t listed = 0;   ///< in the lists of all publishers
};

/// One entry as `kiln jit explain` shows it.
struct ExplainedEntry {
  std::string path;
  std::string state;   ///< placed, compiled, missing
  std::string reason;  ///< empty if the entry was placed
  std::string source;  ///< of the list that has it; empty if none has
};
struct ExplainedSystem {
  jit::SystemPlan plan;
  std::vector<ExplainedEntry> entries;
  std::vector<std::string> notes;  ///< lists that could not be used, lists of other environments
  bool complete = false;           ///< the system is used, a list was found, and each entry was placed or is in a list
};

/// Returns "placed", "present", "missing", "rejected" or "left_out".
const char* to_string(jit::FillOutcome::State state);
/// Returns "published", "known", "incomplete", "changing" or "refused".
const char* to_string(jit::PublishOutcome::State state);

Json to_json(const jit::FillReport& report);
Json to_json(const jit::PublishReport& report);
Json to_json(const ListedSystem& system);
Json to_json(const ExplainedSystem& system);
/// Returns the systems that are not used, with the reason.
Json skipped_json(const std::vector<jit::SystemPlan>& plans);

/// `triton: 12 placed, 2 present, 1 missing (3.4 MB)`
std::string summary(const jit::FillReport& report);
std::string summary(const jit::PublishReport& report);

/// Returns a warning with the number of entries that were rejected or refused and the first reason; empty if there are
/// none.
std::string warning(const jit::FillReport& report);
std::string warning(const jit::PublishReport& report);

/// Emits what happened to a system in `ms` milliseconds, and each entry that was not used, up to a limit
/// (analysis/report/jit_events.hpp). `emit` can be empty.
void emit_events(const EventCallback& emit, const jit::FillReport& report, double ms);
void emit_events(const EventCallback& emit, const jit::PublishReport& report, double ms);

}  // namespace kiln::cli
