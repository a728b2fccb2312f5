// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/audit/trace_reader.hpp"

// What the readers of other profilers' traces share: they collect the calls of the host, the activities of the device
// and the ranges of the program; `ForeignTrace` joins them into kiln's events. docs/internals/trace-format.md has the
// mapping.
namespace kiln::audit {

/// What a call of the CUDA API does, as far as the audit uses it.
enum class CallKind : unsigned char {
  Unknown,  ///< a function of another API
  Other,
  Launch,
  LaunchGraph,
  Copy,
  Wait,
  WaitForDevice,
  Allocate,
  AllocateFromPool,  ///< of the driver: "cudaMallocAsync"
  Release,
};
/// Returns the kind of a function of the runtime or the driver: "cudaLaunchKernel", "cuMemAlloc_v2",
/// "cudaMemcpyAsync_ptsz_v7000". Functions of HIP have the kinds of those of CUDA.
CallKind call_kind(std::string_view function);

/// A call of the host. Times are milliseconds of the profiler's clock.
struct HostCall {
  CallKind kind = CallKind::Other;
  bool pooled = false;  ///< for an allocation: it came from a pool of the program, without a call of the driver
  double start_ms = 0;
  double end_ms = 0;
  std::uint64_t thread = 0;
  std::uint64_t correlation = 0;  ///< joins it with an activity; 0 if unknown
  std::uint64_t bytes = 0;        ///< for an allocation, if known
};

enum class CopyDirection : unsigned char { ToDevice, FromDevice, OnDevice };

/// A kernel or a copy on the device.
struct Activity {
  enum class Kind : unsigned char { Kernel, Copy } kind = Kind::Kernel;
  CopyDirection direction = CopyDirection::OnDevice;
  signed char pinned = -1;  ///< for a copy between host and device: 1 page-locked, 0 pageable, -1 unknown
  std::uint32_t name = 0;   ///< of the kernel, see `ForeignTrace::intern`
  std::uint32_t device = 0;
  std::uint32_t block_threads = 0;
  double start_ms = 0;
  double end_ms = 0;
  std::uint64_t stream = 0;
  std::uint64_t correlation = 0;
  std::uint64_t bytes = 0;
  std::uint64_t grid_blocks = 0;
  std::uint64_t shared_bytes = 0;
};

/// A named range on a thread of the host.
struct NamedRange {
  double start_ms = 0;
  double end_ms = 0;
  std::uint64_t thread = 0;
  std::uint32_t name = 0;
  bool declared = false;  ///< the program declared it; otherwise a framework did, for each of its operators
};

/// Collects the records of another profiler's trace and joins them. Not thread-safe.
class ForeignTrace {
 public:
  explicit ForeignTrace(TraceFormat format) : names_(1) { trace_.format = format; }

  /// Returns the number of a name. Long names lose their middle.
  std::uint32_t intern(std::string_view name);
  void add(const HostCall& call);
  void add(const Activity& activity) { activities_.push_back(activity); }
  void add(const NamedRange& range) { ranges_.push_back(range); }
  /// Notes the stream of a device for which a call waited.
  void add_wait_stream(std::uint64_t correlation, std::uint32_t device, std::uint64_t stream);
  /// Notes a copy whose direction is unknown.
  void add_unknown_copy() { unknown_copies_ = true; }
  /// Notes the size of the memory that a call allocated or released.
  void add_allocation_size(std::uint64_t correlation, std::uint64_t bytes) { sizes_[correlation] = bytes; }
  void add_device(std::uint64_t id, std::string_view name);
  void add_thread(std::uint64_t id, std::string_view name);

  /// Returns whether more records were added than a trace can have.
  bool is_full() const;
  /// The parts of the trace that need no join: process, date.
  Trace& trace() { return trace_; }
  /// Joins the records and returns the trace.
  Trace take();

 private:
  static constexpr std::uint32_t kNoActivity = std::numeric_limits<std::uint32_t>::max();

  struct JoinedCall : HostCall {
    std::uint32_t activity = kNoActivity;  // the first one
    std::uint32_t activities = 0;          // more than one for a graph
  };
  struct ThreadState;

  void join_activities();
  void note_missing();
  void emit();
  bool is_inner(const JoinedCall& call, ThreadState& state) const;
  void fill_launch(const JoinedCall& call, RecordedEvent& to) const;
  void fill_copy(const JoinedCall& call, RecordedEvent& to) const;
  void add_event(const JoinedCall& call, ThreadState& state);
  void end_read(std::size_t position, double end_ms, ThreadState& state);
  bool end_reads(const JoinedCall& wait, std::optional<std::uint64_t> stream, ThreadState& state);
  void add_wait(const JoinedCall& call, ThreadState& state);
  void push(RecordedEvent event, ThreadState& state);
  void assign_operations();

  Trace trace_;
  std::vector<std::string> names_;  // 0 is no name
  std::unordered_map<std::string, std::uint32_t> name_ids_;
  std::vector<JoinedCall> calls_;
  std::vector<Activity> activities_;
  std::vector<NamedRange> ranges_;
  std::unordered_map<std::uint64_t, std::uint64_t> wait_streams_;  // by correlation
  std::unordered_map<std::uint64_t, std::uint64_t> sizes_;         // by correlation
  std::map<std::uint64_t, std::string> devices_;
  bool any_call_ = false;  // of a known API
  bool unknown_copies_ = false;
};

}  // namespace kiln::audit
