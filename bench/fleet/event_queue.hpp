// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace kiln::fleet {

using Time = std::chrono::nanoseconds;

inline double seconds(Time time) { return std::chrono::duration<double>(time).count(); }
inline Time from_seconds(double time) { return Time(static_cast<std::int64_t>(time * 1e9)); }

/// A scheduled event of a host. The meaning of `number` depends on the kind: a thread, claim or key.
struct Event {
  enum class What : std::uint8_t {
    Start,           ///< a host starts a batch; `number` is the batch
    Answered,        ///< a server's response reaches a thread
    TimedOut,        ///< a thread stops waiting for a response
    SleepOver,       ///< a thread that waits for a holder wakes up
    Compiled,        ///< a thread has finished a compile
    Renew,           ///< a claim is due to be renewed
    Effect,          ///< a server executes a request whose client has timed out; `number` is a key
    UploadAnswered,  ///< response to the host's background queue
    UploadTimedOut,
    ProbeDue,       ///< `number` is the server: 0 for objects, 1 for leases
    ProbeAnswered,  ///< `number` as for ProbeDue
    ProbeTimedOut,
  };
  Time at{};
  std::uint64_t order = 0;  ///< orders events of the same time by their scheduling
  std::uint32_t host = 0;
  std::uint32_t number = 0;
  std::uint32_t token = 0;  ///< owner of the lease, for Effect
  What what = What::Start;
  std::uint8_t op = 0;  ///< operation, for Effect
};

/// A queue of events, earliest first. The same events scheduled in the same order come out in the same order.
class EventQueue {
 public:
  void plan(Event event) {
    event.order = planned_++;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), later);
    maximum_ = std::max(maximum_, heap_.size());
  }
  bool empty() const { return heap_.empty(); }
  Event next() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }
  std::uint64_t planned() const { return planned_; }
  std::size_t maximum() const { return maximum_; }

 private:
  static bool later(const Event& a, const Event& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }

  std::vector<Event> heap_;
  std::uint64_t planned_ = 0;
  std::size_t maximum_ = 0;
};

}  // namespace kiln::fleet
