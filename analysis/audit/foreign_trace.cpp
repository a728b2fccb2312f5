// SPDX-License-Identifier: Apache-2.0
#include "analysis/audit/foreign_trace.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/audit/trace_limits.hpp"

namespace kiln::audit {
namespace {

constexpr std::size_t kMaxNameLength = 256;          // a file can name one text in each of a million events
constexpr std::size_t kMaxRecords = 4 * kMaxEvents;  // of each kind; an export of 100 MB has 1.7 million
constexpr std::size_t kMaxOpenReads = 128;           // streams of a thread; each wait looks at all of them
constexpr std::uint64_t kDefaultStream = 7;          // CUPTI's number for the default stream of a context

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [text](std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; });
}

// Streams of different devices can have the same number.
std::uint64_t stream_of(std::uint32_t device, std::uint64_t stream) {
  return stream == kDefaultStream ? 0 : std::uint64_t{device} << 32 | stream;
}

const char* text_of(CopyDirection direction) {
  switch (direction) {
    case CopyDirection::ToDevice: return "to the device";
    case CopyDirection::FromDevice: return "from the device";
    case CopyDirection::OnDevice: break;
  }
  return "on the device";
}

// A colon and a space after the name of a kernel mean that its launch failed.
std::string kernel_name(std::string name) {
  for (std::size_t at = name.find(": "); at != std::string::npos; at = name.find(": ", at)) name.erase(at + 1, 1);
  return name;
}

// Returns the name without the number of the step: "ProfilerStep" for "ProfilerStep#12".
std::string operation_name(const std::string& name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  return end != std::string::npos && name[end] == '#' && end > 0 ? name.substr(0, end) : name;
}

// The operation of the ranges that are open on a thread.
struct OpenRange {
  double end_ms = 0;
  std::uint32_t operation = 0;
  std::uint32_t stage = 0;
  std::uint64_t dispatch = 0;
};

// The ranges of one thread, during the walk through its events.
struct OpenRanges {
  std::size_t next = 0;
  std::size_t end = 0;
  std::vector<OpenRange> open;

  // Closes the ranges that end before this time, or at it if the next one begins there.
  void close_until(double time_ms, bool begins) {
    while (!open.empty() && (open.back().end_ms < time_ms || (begins && open.back().end_ms == time_ms))) {
      open.pop_back();
    }
  }
};

OpenRange nested(const NamedRange& range, const OpenRange& outer, std::uint64_t& dispatches) {
  if (outer.dispatch == 0 && range.declared && range.name != 0) return {range.end_ms, range.name, 0, ++dispatches};
  return {range.end_ms, outer.operation, outer.stage != 0 ? outer.stage : range.name, outer.dispatch};
}

}  // namespace

// What is known of a thread at a point of the walk through its calls.
struct ForeignTrace::ThreadState {
  ThreadState() { ends_ms.fill(std::numeric_limits<double>::lowest()); }

  std::uint64_t stream = 0;               // of the last launch or copy
  std::set<std::uint64_t> streams;        // of all launches and copies
  std::vector<std::size_t> before_first;  // events before the first launch or copy
  // By stream: the position of the event of a read that the host has not waited for, if no launch followed.
  std::map<std::uint64_t, std::size_t> reads;
  std::map<std::uint64_t, double> launch_ends_ms;  // by stream: when its last launch ended on the device
  std::size_t after_launch = 0;                    // position of the event after the last launch
  std::array<double, 10> ends_ms;                  // of the last call of each kind
};

CallKind call_kind(std::string_view function) {
  if (starts_with_any(function, {"hip"})) {
    if (starts_with_any(function, {"hipModuleLaunch", "hipExtLaunch", "hipExtModuleLaunch"})) return CallKind::Launch;
    return call_kind("cuda" + std::string(function.substr(3)));
  }
  if (!starts_with_any(function, {"cu"})) return CallKind::Unknown;
  if (starts_with_any(function, {"cudaLaunchHostFunc", "cuLaunchHostFunc", "cudaMallocHost", "cudaMallocArray",
                                 "cuMemAllocHost", "cudaFreeHost", "cudaFreeArray", "cuMemFreeHost"})) {
    return CallKind::Other;
  }
  if (starts_with_any(function, {"cudaGraphLaunch", "cuGraphLaunch"})) return CallKind::LaunchGraph;
  if (starts_with_any(function, {"cudaLaunch", "cuLaunch"})) return CallKind::Launch;
  if (starts_with_any(function, {"cudaMemcpy", "cuMemcpy"})) return CallKind::Copy;
  if (starts_with_any(function, {"cudaDeviceSynchronize", "cudaThreadSynchronize", "cuCtxSynchronize"})) {
    return CallKind::WaitForDevice;
  }
  if (starts_with_any(function,
                      {"cudaStreamSynchronize", "cudaEventSynchronize", "cuStreamSynchronize", "cuEventSynchronize"})) {
    return CallKind::Wait;
  }
  if (starts_with_any(function, {"cudaMallocAsync", "cudaMallocFromPool", "cuMemAllocAsync", "cuMemAllocFromPool"})) {
    return CallKind::AllocateFromPool;
  }
  if (starts_with_any(function, {"cudaMalloc", "cuMemAlloc", "cuMemCreate"})) return CallKind::Allocate;
  if (starts_with_any(function, {"cudaFree", "cuMemFree", "cuMemRelease"})) return CallKind::Release;
  return CallKind::Other;
}

std::uint32_t ForeignTrace::intern(std::string_view name) {
  if (name.empty()) return 0;
  std::string text(name.substr(0, kMaxNameLength));
  if (name.size() > kMaxNameLength) {
    constexpr std::size_t kTail = 64;
    text.resize(kMaxNameLength - kTail - 3);
    text += "...";
    text += name.substr(name.size() - kTail);
  }
  const auto [at, fresh] = name_ids_.try_emplace(text, static_cast<std::uint32_t>(names_.size()));
  if (fresh) names_.push_back(std::move(text));
  return at->second;
}

void ForeignTrace::add(const HostCall& call) {
  any_call_ = any_call_ || (!call.pooled && call.kind != CallKind::Unknown);
  if (call.kind == CallKind::Other || call.kind == CallKind::Unknown) return;
  calls_.emplace_back();
  static_cast<HostCall&>(calls_.back()) = call;
}

void ForeignTrace::add_wait_stream(std::uint64_t correlation, std::uint32_t device, std::uint64_t stream) {
  wait_streams_[correlation] = stream_of(device, stream);
}

void ForeignTrace::add_device(std::uint64_t id, std::string_view name) {
  if (devices_.size() < kMaxThreads) devices_.emplace(id, name.substr(0, kMaxNameLength));
}

void ForeignTrace::add_thread(std::uint64_t id, std::string_view name) {
  if (trace_.threads.size() < kMaxThreads) trace_.threads.emplace(id, name.substr(0, kMaxNameLength));
}

bool ForeignTrace::is_full() const {
  return calls_.size() + activities_.size() > kMaxRecords || ranges_.size() > kMaxRecords ||
         wait_streams_.size() + sizes_.size() > kMaxRecords;
}

// Gives each call its activities. An activity without a call becomes one, at its time on the device.
void ForeignTrace::join_activities() {
  const auto by_start = [](const HostCall& a, const HostCall& b) { return a.start_ms < b.start_ms; };
  std::stable_sort(calls_.begin(), calls_.end(), by_start);
  std::unordered_map<std::uint64_t, std::size_t> by_correlation;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (calls_[i].correlation != 0) by_correlation.try_emplace(calls_[i].correlation, i);
  }
  const std::size_t recorded = calls_.size();
  for (std::uint32_t i = 0; i < activities_.size(); ++i) {
    const Activity& activity = activities_[i];
    const auto at = by_correlation.find(activity.correlation);
    JoinedCall* call = at == by_correlation.end() ? nullptr : &calls_[at->second];
    if (call != nullptr && (call->activities == 0 || call->kind == CallKind::LaunchGraph)) {
      if (call->activities++ == 0) call->activity = i;
      continue;
    }
    JoinedCall loose;
    loose.kind = activity.kind == Activity::Kind::Kernel ? CallKind::Launch : CallKind::Copy;
    loose.thread = call != nullptr ? call->thread : 0;
    loose.start_ms = activity.start_ms;
    loose.end_ms = activity.start_ms;  // the host's time is unknown
    loose.activity = i;
    loose.activities = 1;
    calls_.push_back(loose);
  }
  if (calls_.size() > recorded) std::stable_sort(calls_.begin(), calls_.end(), by_start);
}

// A file does not say what was recorded, and profilers write no empty tables: calls without their activities do.
void ForeignTrace::note_missing() {
  const auto has_activity = [this](Activity::Kind kind) {
    return std::any_of(activities_.begin(), activities_.end(), [kind](const Activity& a) { return a.kind == kind; });
  };
  const auto has_call = [this](CallKind kind) {
    return std::any_of(calls_.begin(), calls_.end(), [kind](const HostCall& call) { return call.kind == kind; });
  };
  std::vector<std::string>& missing = trace_.not_recorded;
  if (!any_call_) missing.insert(missing.end(), {"calls of the CUDA API", "memory allocations"});
  if (!has_activity(Activity::Kind::Kernel) &&
      (!any_call_ || has_call(CallKind::Launch) || has_call(CallKind::LaunchGraph)))
    missing.push_back("kernels");
  if (!has_activity(Activity::Kind::Copy) && (!any_call_ || has_call(CallKind::Copy))) missing.push_back("copies");
  if (unknown_copies_) missing.push_back("the directions of all copies");
}

// The runtime calls the driver: of a call inside of one of the same kind only the outer one counts.
bool ForeignTrace::is_inner(const JoinedCall& call, ThreadState& state) const {
  double& end_ms = state.ends_ms[static_cast<std::size_t>(call.kind)];
  if (call.activity == kNoActivity && !call.pooled && call.end_ms <= end_ms) return true;
  if (!call.pooled) end_ms = call.end_ms;
  return false;
}

void ForeignTrace::fill_launch(const JoinedCall& call, RecordedEvent& to) const {
  to.event.kind = Event::Kind::Launched;
  to.event.message = "unknown kernel";
  if (call.activity == kNoActivity) return;
  const Activity& kernel = activities_[call.activity];
  to.event.message = call.activities > 1 ? "CUDA graph" : kernel_name(names_[kernel.name]);
  to.event.grid_blocks = kernel.grid_blocks;
  to.event.block_threads = kernel.block_threads;
  to.event.shared_bytes = kernel.shared_bytes;
  if (call.activities > 1) to.event.grid_blocks = to.event.block_threads = 0;  // they differ
  if (const auto at = devices_.find(kernel.device); at != devices_.end()) to.event.target = at->second;
}

void ForeignTrace::fill_copy(const JoinedCall& call, RecordedEvent& to) const {
  const Activity& copy = activities_[call.activity];
  to.event.kind = Event::Kind::Copied;
  to.event.message = text_of(copy.direction);
  to.event.bytes = copy.bytes;
  if (copy.pinned >= 0 && copy.direction != CopyDirection::OnDevice) to.event.pinned = copy.pinned == 1;
}

void ForeignTrace::push(RecordedEvent event, ThreadState& state) {
  event.id = trace_.events.size() + 1;
  event.event.ms = event.end_ms - event.start_ms;
  if (state.streams.empty() && event.event.stream == 0) state.before_first.push_back(trace_.events.size());
  trace_.events.push_back(std::move(event));
}

// A read ends when the host has waited for it, as kiln's own reads do: the next wait for its stream is a part of it.
void ForeignTrace::end_read(std::size_t position, double end_ms, ThreadState& state) {
  RecordedEvent& read = trace_.events[position];
  read.end_ms = std::max(read.end_ms, end_ms);
  read.event.ms = read.end_ms - read.start_ms;
  state.reads.erase(read.event.stream);
}

// Ends the reads that this call waited for: that of its stream; all for a wait for the device; and for an unknown
// stream the oldest one that the device had finished. Returns false if the call waited for launches instead.
bool ForeignTrace::end_reads(const JoinedCall& wait, std::optional<std::uint64_t> stream, ThreadState& state) {
  std::vector<std::size_t> ended;
  for (const auto& [of, position] : state.reads) {
    const bool finished = trace_.events[position].device_end_ms <= wait.end_ms;
    if (wait.kind == CallKind::WaitForDevice || (stream ? of == *stream : finished)) ended.push_back(position);
  }
  if (ended.empty()) return false;
  std::sort(ended.begin(), ended.end());
  if (wait.kind != CallKind::WaitForDevice) ended.resize(1);
  for (const std::size_t position : ended) end_read(position, wait.end_ms, state);
  return wait.kind != CallKind::WaitForDevice || ended.back() >= state.after_launch;
}

void ForeignTrace::add_wait(const JoinedCall& call, ThreadState& state) {
  RecordedEvent event;
  event.start_ms = call.start_ms;
  event.end_ms = call.end_ms;
  event.thread = call.thread;
  event.event.kind = Event::Kind::Synchronized;
  event.event.stream = state.stream;
  const auto known = wait_streams_.find(call.correlation);
  const auto stream = known != wait_streams_.end() ? std::optional(known->second) : std::nullopt;
  if (end_reads(call, stream, state)) return;
  if (stream) event.event.stream = *stream;
  if (call.kind == CallKind::WaitForDevice) {
    event.event.message = "the device";
  } else if (!stream) {
    // The wait for an event ends when the device reaches it, which can be long before its last launch.
    const auto last = state.launch_ends_ms.find(state.stream);
    const bool finished = last == state.launch_ends_ms.end() || last->second <= call.end_ms;
    if (state.streams.size() > 1 || !finished) event.event.message = kUnknownStream;
  }
  push(std::move(event), state);
}

void ForeignTrace::add_event(const JoinedCall& call, ThreadState& state) {
  RecordedEvent event;
  event.start_ms = call.start_ms;
  event.end_ms = call.end_ms;
  event.thread = call.thread;
  event.event.stream = state.stream;
  if (call.activity != kNoActivity) {
    const Activity& activity = activities_[call.activity];
    event.device_start_ms = activity.start_ms;
    event.device_end_ms = activity.end_ms;
    state.stream = event.event.stream = stream_of(activity.device, activity.stream);
    for (const std::size_t at : state.before_first) trace_.events[at].event.stream = state.stream;
    state.before_first.clear();
    state.streams.insert(state.stream);
    const bool kernel = activity.kind == Activity::Kind::Kernel;
    kernel ? fill_launch(call, event) : fill_copy(call, event);
    if (kernel) {
      state.reads.erase(state.stream);
      state.after_launch = trace_.events.size() + 1;
      state.launch_ends_ms[state.stream] = activity.end_ms;
    } else if (activity.direction == CopyDirection::FromDevice) {
      if (state.reads.size() >= kMaxOpenReads) state.reads.erase(state.reads.begin());
      state.reads[state.stream] = trace_.events.size();
    }
  } else if (call.kind == CallKind::Launch || call.kind == CallKind::LaunchGraph) {
    fill_launch(call, event);
    state.reads.erase(state.stream);
    state.after_launch = trace_.events.size() + 1;
  } else {
    event.event.kind = Event::Kind::Allocated;
    event.event.message = call.kind == CallKind::Release ? "released" : "allocated";
    if (call.pooled || call.kind == CallKind::AllocateFromPool) event.event.origin = "pool";
    const auto size = sizes_.find(call.correlation);
    event.event.bytes = size != sizes_.end() ? size->second : call.bytes;
  }
  push(std::move(event), state);
}

void ForeignTrace::emit() {
  std::unordered_map<std::uint64_t, ThreadState> threads;
  trace_.events.reserve(calls_.size());
  for (const JoinedCall& call : calls_) {
    ThreadState& state = threads[call.thread];
    if (is_inner(call, state)) continue;
    if (call.kind == CallKind::Wait || call.kind == CallKind::WaitForDevice) {
      add_wait(call, state);
    } else if (call.kind != CallKind::Copy || call.activity != kNoActivity) {
      add_event(call, state);  // the call of a copy alone does not have its direction
    }
  }
}

// The outermost declared range is the operation, the range inside of it the stage. Calls outside of declared ranges
// belong to no operation; their stage is the outermost range of the framework.
void ForeignTrace::assign_operations() {
  std::sort(ranges_.begin(), ranges_.end(), [](const NamedRange& a, const NamedRange& b) {
    return std::tie(a.thread, a.start_ms, b.end_ms) < std::tie(b.thread, b.start_ms, a.end_ms);
  });
  std::unordered_map<std::uint64_t, OpenRanges> threads;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const auto [at, fresh] = threads.try_emplace(ranges_[i].thread);
    if (fresh) at->second.next = i;
    at->second.end = i + 1;
  }
  std::uint64_t dispatches = 0;
  for (RecordedEvent& event : trace_.events) {
    const auto at = threads.find(event.thread);
    if (at == threads.end()) continue;
    OpenRanges& here = at->second;
    for (; here.next < here.end && ranges_[here.next].start_ms <= event.start_ms; ++here.next) {
      const NamedRange& range = ranges_[here.next];
      if (range.end_ms < event.start_ms) continue;
      here.close_until(range.start_ms, true);
      here.open.push_back(nested(range, here.open.empty() ? OpenRange{} : here.open.back(), dispatches));
    }
    here.close_until(event.start_ms, false);
    if (here.open.empty()) continue;
    const OpenRange& range = here.open.back();
    event.event.context.operation = operation_name(names_[range.operation]);
    event.event.context.stage = names_[range.stage];
    event.event.context.dispatch = range.dispatch;
  }
}

Trace ForeignTrace::take() {
  join_activities();
  note_missing();
  emit();
  calls_ = {};
  activities_ = {};
  assign_operations();
  const double first_ms = trace_.events.empty() ? 0 : trace_.events.front().start_ms;
  for (RecordedEvent& event : trace_.events) {
    event.start_ms -= first_ms;
    event.end_ms -= first_ms;
    if (event.device_end_ms <= 0) continue;
    event.device_start_ms = std::max(0.0, event.device_start_ms - first_ms);
    event.device_end_ms = std::max(0.0, event.device_end_ms - first_ms);
  }
  return std::move(trace_);
}

}  // namespace kiln::audit
