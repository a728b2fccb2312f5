#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "bench/fleet/event_queue.hpp"

namespace kiln::fleet {

/// Where work queues: so many workers take what comes in the order in which it came. Nothing is turned away, as by a
/// server whose kernel keeps what it has not read yet. Must be told of arrivals in the order of time.
class Station {
 public:
  /// A queue this long is where trouble begins: a question here and there still fits into a budget of 100 ms.
  static constexpr Time kLong = std::chrono::milliseconds(10);

  Station(std::string name, unsigned workers) : name_(std::move(name)), free_at_(std::max(workers, 1U)) {}

  /// When work that arrives now is done.
  Time serve(Time arrival, Time work) {
    std::pop_heap(free_at_.begin(), free_at_.end(), std::greater<>());
    Time& free = free_at_.back();
    const Time start = std::max(arrival, free);
    free = start + work;
    const Time done = free;
    std::push_heap(free_at_.begin(), free_at_.end(), std::greater<>());
    note(arrival, start - arrival, work);
    return done;
  }

  const std::string& name() const { return name_; }
  Time longest_wait() const { return longest_; }
  /// When somebody first waited long here; negative: never.
  Time first_long() const { return first_long_; }
  /// Share of the workers' time that was asked for in the busiest second; above one it cannot keep up.
  double busiest() const {
    const auto most = std::max_element(work_.begin(), work_.end());
    return most == work_.end() ? 0 : seconds(*most) / static_cast<double>(free_at_.size());
  }

 private:
  void note(Time arrival, Time waited, Time work) {
    longest_ = std::max(longest_, waited);
    if (waited >= kLong && first_long_ < Time(0)) first_long_ = arrival;
    const auto second = static_cast<std::size_t>(std::chrono::floor<std::chrono::seconds>(arrival).count());
    if (second >= work_.size()) work_.resize(second + 1);
    work_[second] += work;
  }

  std::string name_;
  std::vector<Time> free_at_;  // a heap, the soonest first
  std::vector<Time> work_;     // asked for, by second of arrival
  Time longest_{};
  Time first_long_{-1};
};

}  // namespace kiln::fleet
