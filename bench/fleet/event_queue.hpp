#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace kiln::fleet {

using Time = std::chrono::nanoseconds;

inline double seconds(Time time) { return std::chrono::duration<double>(time).count(); }
inline Time from_seconds(double time) { return Time(static_cast<std::int64_t>(time * 1e9)); }

/// Something that will happen to a host. What `number` counts depends on what happens: lanes, claims or keys.
struct Event {
  enum class What : std::uint8_t {
    Start,           ///< a host begins a batch; `number` is the batch
    Answered,        ///< a server's answer reaches a lane
    TimedOut,        ///< a lane does not wait for it any longer
    NapOver,         ///< a lane that waits for a holder wakes
    Compiled,        ///< a lane has compiled
    Renew,           ///< a claim is due to be renewed
    Effect,          ///< a server does what it was asked to, and nobody hears of it; `number` is a key
    UploadAnswered,  ///< of the host's courier
    UploadTimedOut,
    ProbeDue,       ///< `number` is the server: 0 for bodies, 1 for leases
    ProbeAnswered,  ///< likewise
    ProbeTimedOut,
  };
  Time at{};
  std::uint64_t order = 0;  ///< events of one moment happen as they were planned
  std::uint32_t host = 0;
  std::uint32_t number = 0;
  std::uint32_t token = 0;  ///< of an Effect: whose lease
  What what = What::Start;
  std::uint8_t op = 0;  ///< of an Effect: the operation
};

/// What will happen, soonest first. The same events planned in the same order come out in the same order.
class EventQueue {
 public:
  void plan(Event event) {
    event.order = planned_++;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), later);
    most_ = std::max(most_, heap_.size());
  }
  bool empty() const { return heap_.empty(); }
  Event next() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }
  std::uint64_t planned() const { return planned_; }
  std::size_t most() const { return most_; }

 private:
  static bool later(const Event& a, const Event& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }

  std::vector<Event> heap_;
  std::uint64_t planned_ = 0;
  std::size_t most_ = 0;
};

}  // namespace kiln::fleet
