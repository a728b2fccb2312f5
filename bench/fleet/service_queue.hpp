// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "bench/fleet/event_queue.hpp"

namespace kiln::fleet {

/// A FIFO queue with several workers. It rejects nothing, like a server whose kernel buffers unread requests. Arrivals
/// must be added in order of time. Not thread-safe.
class ServiceQueue {
 public:
  /// Waiting time at which problems start: a few requests with this wait still fit into a budget of 100 ms.
  static constexpr Time kLong = std::chrono::milliseconds(10);

  ServiceQueue(std::string name, unsigned workers) : name_(std::move(name)), free_at_(std::max(workers, 1U)) {}

  /// Adds work and returns the time at which it is done.
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
  /// Returns the time of the first long wait; negative if there was none.
  Time first_long() const { return first_long_; }
  /// Returns the load of the workers in the busiest second; above 1 they cannot keep up.
  double busiest() const {
    const auto maximum = std::max_element(work_.begin(), work_.end());
    return maximum == work_.end() ? 0 : seconds(*maximum) / static_cast<double>(free_at_.size());
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
  std::vector<Time> free_at_;  // a heap, the earliest first
  std::vector<Time> work_;     // requested work by second of arrival
  Time longest_{};
  Time first_long_{-1};
};

}  // namespace kiln::fleet
