// SPDX-License-Identifier: Apache-2.0
// Audit rules: copies to the host that are repeated without a change on the device, or that end a run unmarked.
#include <algorithm>
#include <set>
#include <tuple>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

/// In kiln's traces: three runs or more of an operation read the same number of bytes (more than 16, not marked
/// `materialize`) in the same stage, with no launch and no copy to or on the device in between, so that the data
/// was the same.
constexpr Rule kRebuiltMirror{
    "host_mirror_rebuilt",
    Check::StayedOnDevice,
    Severity::Medium,
    true,
    "several runs read the same bytes from the device again, although nothing on the device has changed",
    "keep the copy on the host from the first read until the device data changes; read it only if it is needed"};
/// In kiln's traces: a declared run copied more than 16 bytes to the host after its last launch on that stream,
/// without the purpose `materialize`.
constexpr Rule kUnmarked{"unmarked_host_copy",
                         Check::StayedOnDevice,
                         Severity::Low,
                         true,
                         "a run ends with a copy of rows to the host that nothing marks as requested by the caller",
                         "return the rows on the device, or state the purpose materialize for the copy (Transfer)"};

constexpr std::uint64_t kSmallCopy = 4096;  // bytes
constexpr std::size_t kRepeatedCopies = 3;

using Ids = std::set<std::uint64_t>;

// Returns true for a copy of rows to the host that the program does not mark as requested or as a measurement.
bool is_unmarked(const RecordedEvent& event) {
  const Purpose purpose = event.event.context.purpose;
  return is_copy_out(event) && event.event.bytes > kScalar && purpose != Purpose::Trace &&
         purpose != Purpose::Materialize;
}

// The reads of one size at one place (operation and stage), one of each run, while the device data was the same.
struct Mirror {
  Events reads;
  std::uint64_t state = 0;  // of the device data
};

void report(Mirror& mirror, Ids& reported, Findings& to) {
  if (mirror.reads.size() >= kRepeatedCopies) {
    to.add(kRebuiltMirror, mirror.reads,
           format_bytes(mirror.reads.front()->event.bytes) + " were read in each of " +
               std::to_string(mirror.reads.size()) + " runs, with no launch and no copy to the device in between");
    for (const RecordedEvent* read : mirror.reads) reported.insert(read->id);
  }
  mirror.reads.clear();
}

// Finds reads that repeat while nothing was launched and nothing was copied to or on the device by any thread. Whether
// launches between two reads changed the data that is read, a trace cannot tell. Returns the ids of the reads.
Ids check_mirrors(const View& view, Findings& to) {
  std::map<std::tuple<std::string_view, std::string_view, std::uint64_t>, Mirror> mirrors;
  Ids reported;
  std::uint64_t state = 0;
  for (const RecordedEvent& event : view.trace.events) {
    const OperationContext& work = event.event.context;
    if (is_launch(event) || (is(event, Event::Kind::Copied) && !is_copy_out(event))) ++state;
    if (work.dispatch == 0 || !is_unmarked(event)) continue;
    Mirror& mirror = mirrors[{work.operation, work.stage, event.event.bytes}];
    if (mirror.state != state) report(mirror, reported, to);
    mirror.state = state;
    const bool same_run = !mirror.reads.empty() && mirror.reads.back()->event.context.dispatch == work.dispatch;
    if (!same_run) mirror.reads.push_back(&event);
  }
  for (auto& [place, mirror] : mirrors) report(mirror, reported, to);
  return reported;
}

// Finds unmarked reads of a declared run after which it uses the stream no more. A read before a copy to the device is
// `host_step`, and several small ones are `repeated_small_reads`.
void check_end(const Run& run, const Ids& mirrors, Findings& to) {
  Events rows;
  Events small;
  std::set<std::uint64_t> used;  // streams with a launch or a copy to the device later in the run
  for (auto at = run.events.rbegin(); at != run.events.rend(); ++at) {
    const RecordedEvent& event = **at;
    if (is_launch(event) || (is_copy_in(event) && event.event.bytes > kScalar)) used.insert(event.event.stream);
    const bool last = event.event.stream == 0 ? used.empty() : used.count(event.event.stream) == 0;
    if (last && is_unmarked(event) && mirrors.count(event.id) == 0) {
      (event.event.bytes > kSmallCopy ? rows : small).push_back(&event);
    }
  }
  if (small.size() < kRepeatedCopies) rows.insert(rows.end(), small.begin(), small.end());
  if (rows.empty()) return;
  std::sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  std::uint64_t bytes = 0;
  for (const RecordedEvent* row : rows) bytes += row->event.bytes;
  to.add(kUnmarked, rows,
         format_bytes(bytes) + " were copied to the host at the end of a run without a stated purpose");
}

}  // namespace

// Only kiln's traces have purposes. A program without declared operations has no reason to state one.
void check_host_copies(const View& view, Findings& to) {
  if (view.trace.format != TraceFormat::Kiln) return;
  const Ids mirrors = check_mirrors(view, to);
  for (const Run& run : view.runs) {
    if (run.number != 0) check_end(run, mirrors, to);
  }
}

Rules host_copy_rules() { return {&kRebuiltMirror, &kUnmarked}; }

}  // namespace kiln::audit
