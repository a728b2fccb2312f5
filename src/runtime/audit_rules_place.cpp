// Did it run on the device, and did it stay there.
#include <algorithm>
#include <set>

#include "runtime/audit_view.hpp"

namespace kiln::audit {
namespace {

constexpr Rule kNotSelected{
    "requested_not_selected",
    Step::RanOnDevice,
    Severity::Blocking,
    true,
    "it was asked to run on a device and the processor was chosen",
    "let an explicit gpu fail where a device cannot be had (kiln::runtime does), and see to what was missing"};
constexpr Rule kSilent{"silent_fallback",
                       Step::RanOnDevice,
                       Severity::Blocking,
                       true,
                       "a device was chosen and no kernel was launched, and nothing was said of it",
                       "launch the device's variant, or say that it falls back (Dispatch::fall_back), with the reason"};
constexpr Rule kDecidedAgain{
    "decided_again",
    Step::RanOnDevice,
    Severity::Medium,
    true,
    "where it runs is decided again in the middle of it",
    "decide once, at the beginning (Workflow::begin), and again only between chunks (Workflow::next_chunk)"};
constexpr Rule kDemoted{
    "input_demoted",
    Step::StayedThere,
    Severity::Blocking,
    true,
    "rows that were on a device were computed on the processor",
    "give the operation a variant for that device; where the host is meant, materialise first, in so many words"};
constexpr Rule kHostStep{"host_step",
                         Step::StayedThere,
                         Severity::Blocking,
                         true,
                         "rows leave the device in the middle, for a step that the host computes, and go back",
                         "write that step as a kernel, so that its rows stay on the device"};
constexpr Rule kCopyFeeds{
    "copy_feeds_device_work",
    Step::StayedThere,
    Severity::High,
    true,
    "the host reads what the device has computed before it gives it more to do",
    "hand the value from kernel to kernel in device memory; read on the host only what sizes an allocation"};
constexpr Rule kSmallReads{"repeated_small_reads",
                           Step::StayedThere,
                           Severity::Medium,
                           true,
                           "the host reads small values one by one, and waits for each",
                           "let a kernel gather them in one place, and read that once"};

constexpr std::uint64_t kScalar = 16;   // bytes; what one read may have that sizes an allocation
constexpr std::uint64_t kSmall = 4096;  // bytes; up to here the wait of a read is more than its copy
constexpr std::size_t kRepeated = 3;    // reads with nothing launched between them
// Each is looked at by itself: a file that has a million in one run is none of a program, and is not to take hours.
constexpr std::size_t kMostStreams = 64;

// What a run did on one stream from one launch to the next.
struct Segment {
  Events events;
  bool followed = false;  // by a launch
};

std::vector<Segment> segments_of(const Run& run, std::uint64_t stream) {
  std::vector<Segment> segments(1);
  for (const RecordedEvent* event : run.events) {
    // The default stream waits for all others.
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

// Those that nothing excuses: not the trace's own, not what somebody asked for at the end, and not the one scalar that
// an allocation needs, of which what follows is the proof and what the program calls it is none.
Events reads_of(const Segment& segment) {
  Events reads;
  for (const RecordedEvent* event : segment.events) {
    const Purpose purpose = event->event.work.purpose;
    if (is_copy_out(*event)) {
      const bool at_boundary = purpose == Purpose::Materialise && !segment.followed;
      if (purpose != Purpose::Trace && !at_boundary) reads.push_back(event);
    } else if (is_allocation(*event)) {
      const auto scalar = std::find_if(reads.rbegin(), reads.rend(),
                                       [](const RecordedEvent* read) { return read->event.bytes <= kScalar; });
      if (scalar != reads.rend()) reads.erase(std::next(scalar).base());
    }
  }
  return reads;
}

// Rows that went out and came back before the next launch; empty where none did.
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

void check_segment(const Segment& segment, Findings& to) {
  const Events reads = reads_of(segment);
  if (reads.empty()) return;
  if (const Events trip = round_trip(segment, reads); !trip.empty()) {
    to.add(kHostStep, trip,
           size_text(bytes_of(trip)) + " went to the host and back in " + counted(trip.size(), "copy", "copies") +
               " between two launches");
    return;
  }
  Events small;
  Events feeding;
  for (const RecordedEvent* read : reads) (read->event.bytes <= kSmall ? small : feeding).push_back(read);
  if (small.size() >= kRepeated) {
    to.add(kSmallReads, small,
           counted(small.size(), "read", "reads") + " of " + size_text(bytes_of(small)) +
               " together, with no launch between them");
  } else {
    feeding.insert(feeding.end(), small.begin(), small.end());
  }
  if (!feeding.empty() && segment.followed) {
    std::sort(feeding.begin(), feeding.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
    to.add(kCopyFeeds, feeding, size_text(bytes_of(feeding)) + " came to the host, and another launch followed");
  }
}

void check_copies(const Run& run, Findings& to) {
  std::set<std::uint64_t> streams;
  for (const RecordedEvent* event : run.events) {
    if (is_copy_out(*event) && streams.size() < kMostStreams) streams.insert(event->event.stream);
  }
  for (const std::uint64_t stream : streams) {
    for (const Segment& segment : segments_of(run, stream)) check_segment(segment, to);
  }
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
  // The evidence begins with what the run itself told, by which it is named.
  const Events evidence = known({run.dispatched, run.decided});
  if (run.residency == Residency::Device && !chosen.empty() && !is_device(chosen)) {
    to.add(kDemoted, evidence,
           counted(run.rows, "row was", "rows were") + " on a device, and the operation ran on the processor");
  }
  if (is_device(chosen) && run.dispatched != nullptr && !is_device(run.selected()) && run.launches == 0 &&
      run.rows != 0 && !run.fell_back) {
    to.add(kSilent, evidence, chosen + " was chosen, nothing was launched, and no fell_back says why");
  }
  check_copies(run, to);
}

// Inside a run on the same thread; a decision that is told as a run's own first event is that run's.
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
  std::map<std::uint64_t, std::uint64_t> open;  // runs, by thread
  for (const RecordedEvent& event : view.trace.events) {
    const Work& work = event.event.work;
    std::uint64_t& here = open[event.thread];
    if (is(event, Event::Kind::Decided)) {
      const RecordedEvent*& before = of_workflow[work.workflow];
      const bool again = work.workflow != 0 && before != nullptr;
      if (here > 0 && own.count(event.id) == 0) {
        to.add(kDecidedAgain, {&event}, "it was decided again while an operation ran");
      } else if (again) {
        to.add(kDecidedAgain, {&event}, "one workflow was decided twice, and no chunk began");
      }
      before = &event;
    }
    here += first.count(event.id);
    if (last.count(event.id) != 0 && here > 0) --here;
  }
}

}  // namespace

void check_place(const View& view, Findings& to) {
  for (const RecordedEvent& event : view.trace.events) {
    if (!is(event, Event::Kind::Decided) || event.event.requested != "gpu") continue;
    if (event.event.selected.empty() || is_device(event.event.selected)) continue;
    to.add(kNotSelected, {&event},
           "gpu was asked for and " + event.event.selected +
               " was chosen: " + (event.event.message.empty() ? "no reason is given" : event.event.message));
  }
  for (const Run& run : view.runs) check_run(run, to);
  check_decisions(view, to);
}

}  // namespace kiln::audit
