// SPDX-License-Identifier: Apache-2.0
// Audit rules: copies to the host between launches, and rows that go to the host and back.
#include <algorithm>
#include <bit>
#include <set>
#include <tuple>
#include <unordered_map>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

/// Between two launches of a run more than 16 bytes went to the host, and more than 16 came back before the next
/// launch.
constexpr Rule kHostStep{"host_step",
                         Check::StayedOnDevice,
                         Severity::Blocking,
                         true,
                         "rows leave the device for a step on the host and return to the device",
                         "write that step as a kernel, so that its rows stay on the device"};
/// A run read from the device, and then launched more on that stream.
constexpr Rule kCopyFeeds{
    "copy_feeds_device_work",
    Check::StayedOnDevice,
    Severity::High,
    true,
    "the host reads results of the device before it launches more work",
    "pass the value between kernels in device memory; read only sizes of allocations on the host"};
/// Three reads or more, of at most 4 KiB each, with no launch between them: they could be one.
constexpr Rule kSmallReads{"repeated_small_reads",
                           Check::StayedOnDevice,
                           Severity::Medium,
                           true,
                           "the host reads small values one by one and waits for each",
                           "gather the values in one buffer with a kernel, and read it once"};

/// Without a known end of the work: reads between launches, or rows that come back (up to a factor of four in
/// size), too rare or too different for a loop.
constexpr Rule kPossible{"possible_host_step",
                         Check::StayedOnDevice,
                         Severity::Low,
                         false,
                         "the host reads results of the device between launches, too rarely for a loop",
                         "declare an operation for each piece of work, so that the audit knows where it ends"};

constexpr std::uint64_t kSmall = 4096;  // bytes; up to this size a read costs more for the wait than for the copy
constexpr std::uint64_t kFence = 64;    // bytes of a read that can size an allocation
constexpr std::size_t kRepeated = 3;    // number of reads without a launch in between
constexpr std::size_t kManyReads = 16;  // the same in a run without a number, which can end at any read
constexpr std::size_t kIncidental = 5;  // at most one read in this many iterations does not limit a loop
// Each stream is checked separately. The limit prevents hours of work on a forged file with a million streams in a run.
constexpr std::size_t kMaxStreams = 64;
// The range that PyTorch's profiler makes around each iteration: no declaration of the program.
constexpr std::string_view kStepOfProfiler = "ProfilerStep";

// The events of a flow on one stream between two launches.
struct Segment {
  Events events;
  Events carried;              // large reads at the end of the run before
  bool of_loop = false;        // true if `carried` are of the iteration before
  bool followed = false;       // true if a launch of the same run follows
  bool launches_more = false;  // true if a launch of the same flow follows
  bool unbounded = false;      // true if the flow has no known end: any read may be the end of the work
  std::string_view before;     // kernel of the launch before, if any
  std::string_view after;
};

// Work of one thread, in order: a run, or in traces of other profilers all runs of a thread.
struct Flow {
  Events events;
  std::vector<std::size_t> breaks;  // as in Run
  bool unbounded = false;
  bool joined = false;  // true if the breaks are between runs
};

std::uint64_t bytes_of(const Events& events) {
  std::uint64_t bytes = 0;
  for (const RecordedEvent* event : events) bytes += event->event.bytes;
  return bytes;
}

bool is_large(const RecordedEvent& copy) { return copy.event.bytes > kScalar; }
bool has_uploads(const Segment& segment) {
  return std::any_of(segment.events.begin(), segment.events.end(),
                     [](const RecordedEvent* event) { return is_copy_in(*event) && is_large(*event); });
}

// Returns the large reads that nothing was copied to the device after.
Events reads_at_end(const Segment& segment) {
  Events reads;
  for (const RecordedEvent* event : segment.events) {
    if (is_copy_in(*event) && is_large(*event)) reads.clear();
    if (is_copy_out(*event) && is_large(*event) && event->event.context.purpose == Purpose::Unspecified) {
      reads.push_back(event);
    }
  }
  return reads;
}

// Divides a flow into segments, for the reads of one stream.
class Segments {
 public:
  Segments(const Flow& flow, std::uint64_t stream) : flow_(flow), stream_(stream) {
    segment_.unbounded = flow.unbounded;
    const bool launches = std::any_of(flow.events.begin(), flow.events.end(), [&](const RecordedEvent* event) {
      return is_launch(*event) && event->event.stream == stream;
    });
    // The default stream synchronizes with all others. A stream without launches copies for all others.
    all_streams_ = stream == 0 || !launches;
    for (std::size_t i = 0; i < flow.events.size(); ++i) {
      if (is_here(*flow.events[i])) last_launch_ = i;
    }
  }

  // Calls `visit` with each segment.
  template <class Visit>
  void for_each(const Visit& visit) {
    auto at_break = flow_.breaks.begin();
    for (std::size_t i = 0; i < flow_.events.size(); ++i) {
      const RecordedEvent* event = flow_.events[i];
      if (at_break != flow_.breaks.end() && *at_break == i) {
        ++at_break;
        segment_.launches_more = flow_.joined && i <= last_launch_;
        visit(segment_);
        flow_.joined ? end_run(i) : start({});
      }
      if (is_here(*event)) {
        segment_.followed = segment_.launches_more = true;
        segment_.after = kernel_of(*event);
        visit(segment_);
        start(kernel_of(*event));
      } else if (is_allocation(*event) || is_copy_in(*event) ||
                 (is_copy_out(*event) && event->event.stream == stream_)) {
        segment_.events.push_back(event);
      }
    }
    visit(segment_);
  }

 private:
  bool is_here(const RecordedEvent& event) const {
    return is_launch(event) && (all_streams_ || event.event.stream == stream_);
  }
  void start(std::string_view kernel) {
    segment_ = {};
    segment_.unbounded = flow_.unbounded;
    segment_.before = kernel;
  }
  // Keeps the last reads of a run. Between two runs of one operation that the program declared, they are its results.
  void end_run(std::size_t next) {
    const std::string& ended = flow_.events[next - 1]->event.context.operation;
    const bool same = ended == flow_.events[next]->event.context.operation;
    const bool of_loop = same && ended == kStepOfProfiler;
    Events reads = same && !of_loop ? Events() : reads_at_end(segment_);
    start(segment_.before);
    segment_.carried = std::move(reads);
    segment_.of_loop = of_loop;
  }

  const Flow& flow_;
  std::uint64_t stream_;
  bool all_streams_ = false;
  std::size_t last_launch_ = 0;
  Segment segment_;
};

// Returns the reads that are a problem. Excludes reads made for tracing, materialization at the end, and one small
// value per allocation, which is recognized by the allocation that follows and not by the purpose that the program
// states.
Events reads_of(const Segment& segment, Findings& to) {
  Events all;
  std::vector<std::size_t> values;  // positions of values that may size an allocation
  for (const RecordedEvent* event : segment.events) {
    const Purpose purpose = event->event.context.purpose;
    if (is_copy_out(*event)) {
      const bool at_boundary = purpose == Purpose::Materialize && !segment.followed;
      if (purpose == Purpose::Trace || at_boundary) continue;
      if (event->event.bytes <= kFence) values.push_back(all.size());
      all.push_back(event);
    } else if (is_allocation(*event) && !values.empty()) {
      to.add_fence(*all[values.back()]);
      all[values.back()] = nullptr;
      values.pop_back();
    }
  }
  all.erase(std::remove(all.begin(), all.end(), nullptr), all.end());
  return all;
}

bool are_like_sizes(std::uint64_t a, std::uint64_t b, std::uint64_t factor) {
  return a / factor <= b && b / factor <= a;
}

struct Suspect {
  const Rule* rule = nullptr;
  Events evidence;
  std::string text;
  bool weak = false;      // true if no number of repetitions makes it a finding
  bool by_kernel = true;  // true if only repetitions between the same kernels count
  bool feeds = true;      // true if more work may depend on it
  bool followed = true;   // true if a launch follows
};

// Finds copies of rows to the host and back before the next launch. Returns no evidence if there are none.
Suspect round_trip(const Segment& segment, const Events& reads) {
  Events out = segment.carried;
  for (const RecordedEvent* read : reads) {
    if (is_large(*read)) out.push_back(read);
  }
  if (out.empty() || (!segment.launches_more && !segment.unbounded)) return {};
  Events in;
  bool allocated = false;  // between the first read and the upload
  for (const RecordedEvent* event : segment.events) {
    if (event->id < out.front()->id) continue;
    allocated = allocated || (in.empty() && is_allocation(*event));
    if (is_copy_in(*event) && is_large(*event)) in.push_back(event);
  }
  if (in.empty()) return {};
  const std::uint64_t down = bytes_of(out);
  const std::uint64_t up = bytes_of(in);
  Suspect trip{&kHostStep, std::move(out), {}};
  if (segment.unbounded) {
    // Without a known end of the work, rows of another size are the input of the next work and not the same rows.
    // More rows in a new buffer are, too.
    if (!are_like_sizes(down, up, 4) || (allocated && up > down)) return {};
    trip.weak = !are_like_sizes(down, up, 2) || (!segment.carried.empty() && !segment.of_loop);
    trip.by_kernel = allocated;
    trip.followed = segment.launches_more;
  }
  trip.evidence.insert(trip.evidence.end(), in.begin(), in.end());
  trip.text = format_bytes(down + up) + " were copied to the host and back in " +
              format_count(trip.evidence.size(), "copy", "copies") + " between two launches";
  return trip;
}

// Returns true if the reads may end a piece of work: the program says so, or new rows are copied beside them.
bool may_end_work(const Segment& segment, const Events& reads) {
  if (!segment.unbounded) return false;
  return has_uploads(segment) || std::all_of(reads.begin(), reads.end(), [](const RecordedEvent* read) {
           return read->event.context.purpose == Purpose::Materialize;
         });
}

std::vector<Suspect> suspects_in(const Segment& segment, Findings& to) {
  const Events reads = reads_of(segment, to);
  if (Suspect trip = round_trip(segment, reads); !trip.evidence.empty()) return {std::move(trip)};
  if (reads.empty()) return {};
  std::vector<Suspect> suspects;
  Events small;
  Events feeding;
  const bool feeds = segment.followed && !may_end_work(segment, reads);
  for (const RecordedEvent* read : reads) (read->event.bytes <= kSmall ? small : feeding).push_back(read);
  if (small.size() >= kRepeated) {
    suspects.push_back({&kSmallReads, small,
                        format_count(small.size(), "read", "reads") + " of " + format_bytes(bytes_of(small)) +
                            " in total without a launch in between"});
    suspects.back().feeds = feeds;
  } else {
    feeding.insert(feeding.end(), small.begin(), small.end());
  }
  if (!feeding.empty() && feeds) {
    std::sort(feeding.begin(), feeding.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
    suspects.push_back(
        {&kCopyFeeds, feeding, format_bytes(bytes_of(feeding)) + " were read by the host before another launch"});
  }
  return suspects;
}

// The suspects of a flow without a known end.
class Suspects {
 public:
  explicit Suspects(const Flow& flow) {
    for (const RecordedEvent* event : flow.events) {
      if (is_launch(*event)) ++launches_[kernel_of(*event)];
    }
  }

  void add(const Segment& segment, Suspect suspect) {
    Pattern pattern{suspect.weak, suspect.rule, {}, {}, 0};
    if (suspect.by_kernel) {
      pattern = {suspect.weak, suspect.rule, segment.before, segment.after, std::bit_width(bytes_of(suspect.evidence))};
    }
    patterns_[pattern].push_back(std::move(suspect));
  }

  // Reports the loops, and the others together as a suspicion.
  void report(const View& view, Findings& to) {
    std::map<std::string_view, std::vector<const Suspect*>> dropped;  // by operation
    for (auto& [pattern, all] : patterns_) {
      const bool loop = is_loop(pattern, all);
      const std::string times = all.size() > 1 ? ", " + std::to_string(all.size()) + " times" : "";
      for (const Suspect& each : all) {
        if (loop) {
          to.add(*each.rule, each.evidence, each.text + times);
        } else if (each.feeds && each.followed) {
          dropped[view.operation_of(*each.evidence.front())].push_back(&each);
        }
      }
    }
    for (const auto& [operation, all] : dropped) add_possible(all, to);
  }

 private:
  // Whether it is weak, the rule, the kernels before and after, and the size as a power of two.
  using Pattern = std::tuple<bool, const Rule*, std::string_view, std::string_view, int>;

  bool is_loop(const Pattern& pattern, const std::vector<Suspect>& all) const {
    const auto& [weak, rule, before, after, size] = pattern;
    if (rule == &kSmallReads && all.front().evidence.size() >= kManyReads) return true;
    if (weak || all.size() < kLoop) return false;
    const auto followed = std::count_if(all.begin(), all.end(), [](const Suspect& each) { return each.followed; });
    if (static_cast<std::size_t>(followed) + 1 < kLoop) return false;
    if (rule != &kCopyFeeds) return true;
    // The iterations are the launches of the rarer kernel.
    return all.size() * kIncidental > std::min(launches_of(before), launches_of(after));
  }
  std::size_t launches_of(std::string_view kernel) const {
    const auto at = launches_.find(kernel);
    return at == launches_.end() ? 0 : at->second;
  }
  static void add_possible(const std::vector<const Suspect*>& all, Findings& to) {
    Events evidence;
    for (const Suspect* each : all) evidence.insert(evidence.end(), each->evidence.begin(), each->evidence.end());
    std::sort(evidence.begin(), evidence.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
    to.add(kPossible, evidence,
           format_count(all.size(), "place", "places") + " between launches where the host copied " +
               format_bytes(bytes_of(evidence)) + " in total; it is unclear whether later work depends on them");
    to.add_unclear(evidence);
  }

  std::unordered_map<std::string_view, std::size_t> launches_;
  std::map<Pattern, std::vector<Suspect>> patterns_;
};

void check_flow(const View& view, const Flow& flow, Findings& to) {
  std::set<std::uint64_t> streams;
  for (const RecordedEvent* event : flow.events) {
    if (is_copy_out(*event) && streams.size() < kMaxStreams) streams.insert(event->event.stream);
  }
  if (streams.empty()) return;
  Suspects suspects(flow);
  for (const std::uint64_t stream : streams) {
    Segments(flow, stream).for_each([&](const Segment& segment) {
      for (Suspect& each : suspects_in(segment, to)) {
        if (flow.unbounded) {
          suspects.add(segment, std::move(each));
        } else {
          to.add(*each.rule, each.evidence, each.text);
        }
      }
    });
  }
  suspects.report(view, to);
}

}  // namespace

void check_round_trips(const View& view, Findings& to) {
  // A range of another profiler can enclose many pieces of work, so its end is no evidence.
  const bool foreign = view.trace.format != TraceFormat::Kiln;
  std::map<std::uint64_t, Flow> threads;
  for (const Run& run : view.runs) {
    if (run.number == 0 || !foreign) {
      check_flow(view, {run.events, run.breaks, run.number == 0, false}, to);
      continue;
    }
    Flow& flow = threads[run.events.front()->thread];
    flow.unbounded = flow.joined = true;
    if (!flow.events.empty()) flow.breaks.push_back(flow.events.size());
    flow.events.insert(flow.events.end(), run.events.begin(), run.events.end());
  }
  for (const auto& [thread, flow] : threads) check_flow(view, flow, to);
}

Rules round_trip_rules() { return {&kHostStep, &kCopyFeeds, &kSmallReads, &kPossible}; }

}  // namespace kiln::audit
