#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/clock.hpp"

namespace kiln::test {

/// How late the machine itself is, for one who only sleeps. What is promised in milliseconds is promised on a machine
/// that runs whoever is due; a test that measures such a promise on one that is not ours alone adds this to the limit.
class Pacer {
 public:
  Pacer() : thread_([this] { pace(); }) {}
  ~Pacer() {
    over_ = true;
    thread_.join();
  }
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;

  /// At worst, since it was made.
  std::chrono::nanoseconds late() const { return std::chrono::nanoseconds(late_); }

 private:
  void pace() {
    constexpr std::chrono::nanoseconds kNap = std::chrono::microseconds(200);
    while (!over_) {
      const std::chrono::nanoseconds start = system_clock().steady();
      system_clock().sleep(kNap);
      late_ = std::max(late_.load(), (system_clock().steady() - start - kNap).count());
    }
  }

  std::atomic<bool> over_{false};
  std::atomic<std::chrono::nanoseconds::rep> late_{0};
  std::thread thread_;
};

}  // namespace kiln::test
