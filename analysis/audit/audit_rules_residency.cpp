// Audit rules: whether the path ran on the device and its data stayed there.
#include <algorithm>
#include <bit>
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

constexpr std::uint64_t kSmall = 4096;  // bytes; up to this size a read costs more for the wait than for the copy
constexpr std::size_t kRepeated = 3;    // number of reads without a launch in between
constexpr std::size_t kManyReads = 16;  // the same in a run without a number, which can end at any read
// Each stream is checked separately. The limit prevents hours of work on a forged file with a million streams in a run.
constexpr std::size_t kMaxStreams = 64;

// The events of a run on one stream between two launches.
struct Segment {
  Events events;
  bool followed = false;    // true if a launch follows
  bool unbounded = false;   // true if the run has no number: any read may be the end of the work
  std::string_view before;  // kernel of the launch before, if any
  std::string_view after;
};

// Calls `visit` with each segment of the run on one stream.
template <class Visit>
void for_each_segment(const Run& run, std::uint64_t stream, const Visit& visit) {
  Segment segment;
  segment.unbounded = run.number == 0;
  const auto finish = [&](std::string_view kernel) {
    visit(segment);
    segment.events.clear();
    segment.followed = false;
    segment.before = kernel;
    segment.after = {};
  };
  auto at_break = run.breaks.begin();
  for (std::size_t i = 0; i < run.events.size(); ++i) {
    const RecordedEvent* event = run.events[i];
    if (at_break != run.breaks.end() && *at_break == i) {
      ++at_break;
      finish({});
    }
    // The default stream synchronizes with all others.
    const bool here = event->event.stream == stream || stream == 0;
    if (is_launch(*event) && here) {
      segment.followed = true;
      segment.after = kernel_of(*event);
      finish(kernel_of(*event));
    } else if (is_allocation(*event) || is_copy_in(*event) || (is_copy_out(*event) && event->event.stream == stream)) {
      segment.events.push_back(event);
    }
  }
  visit(segment);
}

std::uint64_t bytes_of(const Events& events) {
  std::uint64_t bytes = 0;
  for (const RecordedEvent* event : events) bytes += event->event.bytes;
  return bytes;
}

// Returns the reads that are a problem. Excludes reads made for tracing, materialization at the end, and one scalar per
// allocation, which is recognized by the allocation that follows and not by the purpose that the program states.
Events reads_of(const Segment& segment, Findings& to) {
  Events reads;
  for (const RecordedEvent* event : segment.events) {
    const Purpose purpose = event->event.context.purpose;
    if (is_copy_out(*event)) {
      const bool at_boundary = purpose == Purpose::Materialize && !segment.followed;
      if (purpose != Purpose::Trace && !at_boundary) reads.push_back(event);
    } else if (is_allocation(*event)) {
      const auto scalar = std::find_if(reads.rbegin(), reads.rend(),
                                       [](const RecordedEvent* read) { return read->event.bytes <= kScalar; });
      if (scalar == reads.rend()) continue;
      to.add_fence(**scalar);
      reads.erase(std::next(scalar).base());
    }
  }
  return reads;
}

bool are_like_sizes(std::uint64_t a, std::uint64_t b) { return a <= b * 2 && b <= a * 2; }

// Returns the copies of rows to the host and back before the next launch; empty if there are none.
Events round_trip(const Segment& segment, const Events& reads) {
  Events out;
  for (const RecordedEvent* read : reads) {
    if (read->event.bytes > kScalar) out.push_back(read);
  }
  if (out.empty()) return {};
  Events in;
  for (const RecordedEvent* event : segment.events) {
    if (is_copy_in(*event) && event->id > out.front()->id && event->event.bytes > kScalar) in.push_back(event);
  }
  // Without a known end of the work, rows of another size are the input of the next work and not the same rows.
  if (in.empty() || (segment.unbounded && !are_like_sizes(bytes_of(out), bytes_of(in)))) return {};
  out.insert(out.end(), in.begin(), in.end());
  return out;
}

// Returns true if the reads may end a piece of work: the program says so, or new rows follow them.
bool may_end_work(const Segment& segment, const Events& reads) {
  if (!segment.unbounded) return false;
  return std::all_of(reads.begin(), reads.end(),
                     [](const RecordedEvent* read) { return read->event.context.purpose == Purpose::Materialize; }) ||
         std::any_of(segment.events.begin(), segment.events.end(), [&](const RecordedEvent* event) {
           return is_copy_in(*event) && event->id > reads.back()->id && event->event.bytes > kScalar;
         });
}

struct Suspect {
  const Rule* rule;
  Events evidence;
  std::string text;
};

std::vector<Suspect> suspects_in(const Segment& segment, Findings& to) {
  const Events reads = reads_of(segment, to);
  if (reads.empty()) return {};
  if (const Events trip = round_trip(segment, reads); !trip.empty()) {
    return {{&kHostStep, trip,
             format_bytes(bytes_of(trip)) + " were copied to the host and back in " +
                 format_count(trip.size(), "copy", "copies") + " between two launches"}};
  }
  std::vector<Suspect> suspects;
  Events small;
  Events feeding;
  for (const RecordedEvent* read : reads) (read->event.bytes <= kSmall ? small : feeding).push_back(read);
  if (small.size() >= kRepeated) {
    suspects.push_back({&kSmallReads, small,
                        format_count(small.size(), "read", "reads") + " of " + format_bytes(bytes_of(small)) +
                            " in total without a launch in between"});
  } else {
    feeding.insert(feeding.end(), small.begin(), small.end());
  }
  if (!feeding.empty() && segment.followed && !may_end_work(segment, reads)) {
    std::sort(feeding.begin(), feeding.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
    suspects.push_back(
        {&kCopyFeeds, feeding, format_bytes(bytes_of(feeding)) + " were read by the host before another launch"});
  }
  return suspects;
}

// The suspects of runs without a number by pattern: the rule, the kernels before and after, and the size as a power of
// two.
using SuspectPatterns =
    std::map<std::tuple<const Rule*, std::string_view, std::string_view, int>, std::vector<Suspect>>;

void add_repeated(SuspectPatterns& patterns, Findings& to) {
  for (auto& [pattern, all] : patterns) {
    const bool at_once = all.front().rule == &kSmallReads && all.front().evidence.size() >= kManyReads;
    if (all.size() < kLoop && !at_once) continue;
    const std::string times = all.size() > 1 ? ", " + std::to_string(all.size()) + " times" : "";
    for (Suspect& each : all) to.add(*each.rule, each.evidence, each.text + times);
  }
}

void check_copies(const Run& run, Findings& to) {
  std::set<std::uint64_t> streams;
  for (const RecordedEvent* event : run.events) {
    if (is_copy_out(*event) && streams.size() < kMaxStreams) streams.insert(event->event.stream);
  }
  SuspectPatterns patterns;
  for (const std::uint64_t stream : streams) {
    for_each_segment(run, stream, [&](const Segment& segment) {
      for (Suspect& each : suspects_in(segment, to)) {
        if (run.number != 0) {
          to.add(*each.rule, each.evidence, each.text);
        } else {
          const int size = std::bit_width(bytes_of(each.evidence));
          patterns[{each.rule, segment.before, segment.after, size}].push_back(std::move(each));
        }
      }
    });
  }
  add_repeated(patterns, to);
}

Events known(std::initializer_list<const RecordedEvent*> events) {
  Events there;
  for (const RecordedEvent* event : events) {
    if (event != nullptr) there.push_back(event);
  }
  return there;
}

void check_run(const Run& run, Findings& to) {
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
  check_copies(run, to);
}

// Finds decisions inside a run on the same thread. A decision that is the first event of a run belongs to that run.
void check_decisions(const View& view, Findings& to) {
  std::set<std::uint64_t> first;
  std::set<std::uint64_t> last;
  std::set<std::uint64_t> own;
  for (const Run& run : view.runs) {
    if (run.number == 0) continue;
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
  for (const Run& run : view.runs) check_run(run, to);
  check_decisions(view, to);
}

Rules residency_rules() {
  return {&kNotSelected, &kSilent, &kRepeatedDecision, &kDemoted, &kHostStep, &kCopyFeeds, &kSmallReads};
}

}  // namespace kiln::audit
