#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/mutex.hpp"

namespace kiln {

/// The clock that all of kiln uses. Tests replace it to control time. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Returns the wall time, comparable with file times.
  virtual std::chrono::nanoseconds wall() const = 0;
  /// Returns the monotonic time, for durations and deadlines.
  virtual std::chrono::nanoseconds steady() const = 0;
  virtual void sleep(std::chrono::nanoseconds time) const = 0;
  /// Waits under the mutex until the condition is notified, at most `time` by this clock. Spurious wakeups are
  /// possible.
  virtual void wait(Condition& condition, Mutex& mutex, std::chrono::nanoseconds time) const KILN_REQUIRES(mutex);
};

/// Returns the clock of the operating system. It has no state, so the reference is always valid.
const Clock& system_clock();

/// An interrupt check for the waits of this thread, for example to handle Ctrl-C in an interpreter. While the object
/// exists, each `Clock::wait` of the thread that created it periodically calls `keep_waiting` without holding the
/// wait's mutex. If `keep_waiting` returns false, every `Deadline` of the thread expires.
class InterruptCheck {
 public:
  explicit InterruptCheck(std::function<bool()> keep_waiting);
  ~InterruptCheck();
  InterruptCheck(const InterruptCheck&) = delete;
  InterruptCheck& operator=(const InterruptCheck&) = delete;

  /// Returns whether the calling thread must stop waiting.
  static bool is_interrupted();

 private:
  friend class Clock;
  const std::function<bool()> goes_on_;
  InterruptCheck* const outer_;
  bool over_ = false;
};

/// A deadline, counted from construction. A value type.
class Deadline {
 public:
  Deadline(const Clock& clock, std::chrono::nanoseconds timeout)
      : clock_(clock), start_(clock.steady()), timeout_(timeout) {}
  /// Returns the remaining time; the maximum duration means unlimited and does not decrease.
  std::chrono::nanoseconds remaining() const {
    if (InterruptCheck::is_interrupted()) return std::chrono::nanoseconds(0);
    if (timeout_ == std::chrono::nanoseconds::max()) return timeout_;
    const auto passed = clock_.steady() - start_;
    return passed < timeout_ ? timeout_ - passed : std::chrono::nanoseconds(0);
  }

 private:
  const Clock& clock_;
  std::chrono::nanoseconds start_;
  std::chrono::nanoseconds timeout_;
};

/// Formats a wall time as `2026-11-15T18:20:00Z`.
std::string format_utc(std::chrono::nanoseconds wall);

/// Returns the milliseconds since `start`, a time of the clock's `steady()`.
double milliseconds_since(const Clock& clock, std::chrono::nanoseconds start);

}  // namespace kiln
