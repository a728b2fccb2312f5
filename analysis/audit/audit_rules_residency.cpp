// Audit rules: whether the path ran on the device and its data stayed there.
#include <algorithm>
#include <set>
#include <tuple>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

constexpr Rule kNotSelected{
    "requested_not_selected",
    Check::RanOnDevice,
    Severity::Blocking,
    true,
    "a device was requested but the CPU was selected",
    "return an error if gpu is requested without a device (as kiln::runtime does), and fix what is missing"};
constexpr Rule kSilent{"silent_fallback",
                       Check::RanOnDevice,
                       Severity::Blocking,
                       true,
                       "a device was selected but no kernel was launched, and no fallback was reported",
                       "launch the variant of the device, or report the fallback and its reason (Dispatch::fall_back)"};
constexpr Rule kRepeatedDecision{
    "repeated_decision",
    Check::RanOnDevice,
    Severity::Medium,
    true,
    "the backend is decided again during an operation or workflow",
    "decide once at the beginning (Workflow::begin), and again only between chunks (Workflow::next_chunk)"};
constexpr Rule kDemoted{"input_demoted",
                        Check::StayedOnDevice,
                        Severity::Blocking,
                        true,
                        "rows on a device were computed on the CPU",
                        "add a variant for that device; to compute on the host, materialize the rows explicitly first"};
constexpr Rule kHostStep{"host_step",
                         Check::StayedOnDevice,
                         Severity::Blocking,
                         true,
                         "rows leave the device for a step on the host and return to the device",
                         "write that step as a kernel, so that its rows stay on the device"};
constexpr Rule kCopyFeeds{
    "copy_feeds_device_work",
    Check::StayedOnDevice,
    Severity::High,
    true,
    "the host reads results of the device before it launches more work",
    "pass the value between kernels in device memory; read only sizes of allocations on the host"};
constexpr Rule kSmallReads{"repeated_small_reads",
                           Check::StayedOnDevice,
                           Severity::Medium,
                           true,
                           "the host reads small values one by one and waits for each",
                           "gather the values in one buffer with a kernel, and read it once"};

constexpr Rule kRebuiltMirror{
    "host_mirror_rebuilt",
    Check::StayedOnDevice,
    Severity::Medium,
    true,
    "several runs read the same bytes from the device again, although nothing on the device has changed",
    "keep the copy on the host from the first read until the device data changes; read it only if it is needed"};
constexpr Rule kUnmarked{"unmarked_host_copy",
                         Check::StayedOnDevice,
                         Severity::Low,
                         true,
                         "a run ends with a copy of rows to the host that nothing marks as requested by the caller",
                         "return the rows on the device, or state the purpose materialize for the copy (Transfer)"};

constexpr std::uint64_t kScalar = 16;   // maximum bytes of a read that determines an allocation size
constexpr std::uint64_t kSmall = 4096;  // bytes; up to this size a read costs more for the wait than for the copy
constexpr std::size_t kRepeated = 3;    // number of reads without a launch in between
// Each stream is checked separately. The limit prevents hours of work on a forged file with a million streams in a run.
constexpr std::size_t kMaxStreams = 64;

// The events of a run on one stream between two launches.
struct Segment {
  Events events;
  bool followed = false;  // true if a launch follows
};

std::vector<Segment> segments_of(const Run& run, std::uint64_t stream) {
  std::vector<Segment> segments(1);
  for (const RecordedEvent* event : run.events) {
    // The default stream synchronizes with all others.
    const bool here = event->event.stream == stream || stream == 0;
    if (is_launch(*event) && here) {
      segments.back().followed = true;
      segments.emplace_back();
    } else if (is_allocation(*event) || is_copy_in(*event) || (is_copy_out(*event) && event->event.stream == stream)) {
      segments.back().events.push_back(event);
    }
  }
  return segments;
}

std::uint64_t bytes_of(const Events& events) {
  std::uint64_t bytes = 0;
  for (const RecordedEvent* event : events) bytes += event->event.bytes;
  return bytes;
}

// Returns the reads that are a problem. Excludes reads made for tracing, materialization at the end, and one scalar per
// allocation, which is recognized by the allocation that follows and not by the purpose that the program states.
Events reads_of(const Segment& segment) {
  Events reads;
  for (const RecordedEvent* event : segment.events) {
    const Purpose purpose = event->event.context.purpose;
    if (is_copy_out(*event)) {
      const bool at_boundary = purpose == Purpose::Materialize && !segment.followed;
      if (purpose != Purpose::Trace && !at_boundary) reads.push_back(event);
    } else if (is_allocation(*event)) {
      const auto scalar = std::find_if(reads.rbegin(), reads.rend(),
                                       [](const RecordedEvent* read) { return read->event.bytes <= kScalar; });
      if (scalar != reads.rend()) reads.erase(std::next(scalar).base());
    }
  }
  return reads;
}

// Returns the copies of rows to the host and back before the next launch; empty if there are none.
Events round_trip(const Segment& segment, const Events& reads) {
  Events out;
  for (const RecordedEvent* read : reads) {
    if (read->event.bytes > kScalar) out.push_back(read);
  }
  if (out.empty()) return {};
  Events both = out;
  for (const RecordedEvent* event : segment.events) {
    if (is_copy_in(*event) && event->id > out.front()->id && event->event.bytes > kScalar) both.push_back(event);
  }
  return both.size() > out.size() ? both : Events();
}

using Ids = std::set<std::uint64_t>;

// Finds rows that a declared operation copies to the host at its end without saying that the caller asked for them. A
// program without declared operations has no way to say so.
void check_end(const Events& reads, const Ids& mirrors, Findings& to) {
  Events rows;
  for (const RecordedEvent* read : reads) {
    const bool declared = read->event.context.dispatch != 0;
    if (declared && read->event.bytes > kScalar && mirrors.count(read->id) == 0) rows.push_back(read);
  }
  if (rows.empty()) return;
  to.add(kUnmarked, rows,
         format_bytes(bytes_of(rows)) + " were copied to the host after the last launch without a stated purpose");
}

void check_segment(const Segment& segment, const Ids& mirrors, Findings& to) {
  const Events reads = reads_of(segment);
  if (reads.empty()) return;
  if (const Events trip = round_trip(segment, reads); !trip.empty()) {
    to.add(kHostStep, trip,
           format_bytes(bytes_of(trip)) + " were copied to the host and back in " +
               format_count(trip.size(), "copy", "copies") + " between two launches");
    return;
  }
  Events small;
  Events feeding;
  for (const RecordedEvent* read : reads) (read->event.bytes <= kSmall ? small : feeding).push_back(read);
  if (small.size() >= kRepeated) {
    to.add(kSmallReads, small,
           format_count(small.size(), "read", "reads") + " of " + format_bytes(bytes_of(small)) +
               " in total without a launch in between");
  } else {
    feeding.insert(feeding.end(), small.begin(), small.end());
  }
  if (!feeding.empty() && segment.followed) {
    std::sort(feeding.begin(), feeding.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
    to.add(kCopyFeeds, feeding, format_bytes(bytes_of(feeding)) + " were read by the host before another launch");
  } else {
    check_end(feeding, mirrors, to);
  }
}

void check_copies(const Run& run, const Ids& mirrors, Findings& to) {
  std::set<std::uint64_t> streams;
  for (const RecordedEvent* event : run.events) {
    if (is_copy_out(*event) && streams.size() < kMaxStreams) streams.insert(event->event.stream);
  }
  for (const std::uint64_t stream : streams) {
    for (const Segment& segment : segments_of(run, stream)) check_segment(segment, mirrors, to);
  }
}

Events known(std::initializer_list<const RecordedEvent*> events) {
  Events there;
  for (const RecordedEvent* event : events) {
    if (event != nullptr) there.push_back(event);
  }
  return there;
}

void check_run(const Run& run, const Ids& mirrors, Findings& to) {
  const std::string chosen = run.chosen();
  // The evidence starts with the events of the run itself, which name it.
  const Events evidence = known({run.dispatched, run.decided});
  if (run.residency == Residency::Device && !chosen.empty() && !is_device(chosen)) {
    to.add(kDemoted, evidence,
           format_count(run.rows, "row was", "rows were") + " on a device, but the operation ran on the CPU");
  }
  if (is_device(chosen) && run.dispatched != nullptr && !is_device(run.selected()) && run.launches == 0 &&
      run.rows != 0 && !run.fell_back) {
    to.add(kSilent, evidence, chosen + " was selected, but nothing was launched and no fell_back event gives a reason");
  }
  check_copies(run, mirrors, to);
}

// Finds reads of the same size at the same place (operation and stage) in several runs, while nothing was launched and
// nothing was copied to or on the device by any thread, so that the device data is the same. Whether launches between
// two reads changed the data that is read, a trace cannot tell. Returns the ids of the reads.
Ids check_mirrors(const View& view, Findings& to) {
  struct Reads {
    Events events;
    std::uint64_t state = 0;
  };
  std::map<std::tuple<std::string, std::string, std::uint64_t>, Reads> places;
  Ids mirrors;
  const auto report = [&](Reads& reads) {
    if (reads.events.size() >= kRepeated) {
      to.add(kRebuiltMirror, reads.events,
             format_bytes(reads.events.front()->event.bytes) + " were read in each of " +
                 std::to_string(reads.events.size()) + " runs, with no launch and no copy to the device in between");
      for (const RecordedEvent* read : reads.events) mirrors.insert(read->id);
    }
    reads.events.clear();
  };
  std::uint64_t state = 0;  // of the device data; changes with each launch and copy
  for (const RecordedEvent& event : view.trace.events) {
    const OperationContext& work = event.event.context;
    if (is_launch(event) || (is(event, Event::Kind::Copied) && !is_copy_out(event))) ++state;
    if (!is_copy_out(event) || work.dispatch == 0 || event.event.bytes <= kScalar) continue;
    if (work.purpose == Purpose::Trace || work.purpose == Purpose::Materialize) continue;
    Reads& reads = places[{work.operation, work.stage, event.event.bytes}];
    if (reads.state != state) report(reads);
    reads.state = state;
    const bool same_run = !reads.events.empty() && reads.events.back()->event.context.dispatch == work.dispatch;
    if (!same_run) reads.events.push_back(&event);
  }
  for (auto& [place, reads] : places) report(reads);
  return mirrors;
}

// Finds decisions inside a run on the same thread. A decision that is the first event of a run belongs to that run.
void check_decisions(const View& view, Findings& to) {
  std::set<std::uint64_t> first;
  std::set<std::uint64_t> last;
  std::set<std::uint64_t> own;
  for (const Run& run : view.runs) {
    first.insert(run.events.front()->id);
    last.insert(run.events.back()->id);
    if (run.decided != nullptr) own.insert(run.decided->id);
  }
  std::map<std::uint64_t, const RecordedEvent*> of_workflow;
  std::map<std::uint64_t, std::uint64_t> open;  // open runs by thread
  for (const RecordedEvent& event : view.trace.events) {
    const OperationContext& work = event.event.context;
    std::uint64_t& here = open[event.thread];
    if (is(event, runtime::events::kDecided)) {
      const RecordedEvent*& before = of_workflow[work.workflow];
      const bool again = work.workflow != 0 && before != nullptr;
      if (here > 0 && own.count(event.id) == 0) {
        to.add(kRepeatedDecision, {&event}, "a decision was made while an operation was running");
      } else if (again) {
        to.add(kRepeatedDecision, {&event}, "one workflow was decided twice without a new chunk");
      }
      before = &event;
    }
    here += first.count(event.id);
    if (last.count(event.id) != 0 && here > 0) --here;
  }
}

}  // namespace

void check_residency(const View& view, Findings& to) {
  for (const RecordedEvent& event : view.trace.events) {
    if (!is(event, runtime::events::kDecided) || event.event.requested != "gpu") continue;
    if (event.event.selected.empty() || is_device(event.event.selected)) continue;
    to.add(kNotSelected, {&event},
           "gpu was requested but " + event.event.selected +
               " was selected: " + (event.event.message.empty() ? "no reason given" : event.event.message));
  }
  const Ids mirrors = check_mirrors(view, to);
  for (const Run& run : view.runs) check_run(run, mirrors, to);
  check_decisions(view, to);
}

Rules residency_rules() {
  return {&kNotSelected, &kSilent,     &kRepeatedDecision, &kDemoted, &kHostStep,
          &kCopyFeeds,   &kSmallReads, &kRebuiltMirror,    &kUnmarked};
}

}  // namespace kiln::audit
