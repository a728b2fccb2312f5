// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <kiln/wait.hpp>

#include "base/mutex.hpp"

namespace kiln {

class Deadline;

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
  /// Same, until the deadline. If it can be interrupted, polls its interrupt check every few milliseconds without
  /// holding the mutex.
  void wait_until(Condition& condition, Mutex& mutex, const Deadline& deadline) const KILN_REQUIRES(mutex);
};

/// Returns the clock of the operating system. It has no state, so the reference is always valid.
const Clock& system_clock();

/// A check whether the waits of a call must end, for example because of Ctrl-C in an interpreter. Once it is
/// interrupted, it stays interrupted and does not call `keep_waiting` again. Not thread-safe: only the thread that made
/// the call uses it.
class InterruptCheck {
 public:
  /// `keep_waiting` returns false if the call must end. It must outlive this object; null means that nothing
  /// interrupts.
  explicit InterruptCheck(const std::function<bool()>* keep_waiting)
      : keep_waiting_(keep_waiting != nullptr && *keep_waiting ? keep_waiting : nullptr) {}
  InterruptCheck(const InterruptCheck&) = delete;
  InterruptCheck& operator=(const InterruptCheck&) = delete;

  bool can_interrupt() const { return keep_waiting_ != nullptr; }
  bool is_interrupted() const { return interrupted_; }
  /// Calls `keep_waiting`. Returns whether the call must end. An exception of the function ends it too.
  bool poll() noexcept {
    if (keep_waiting_ == nullptr || interrupted_) return interrupted_;
    try {
      interrupted_ = !(*keep_waiting_)();
    } catch (...) {
      interrupted_ = true;  // an exception of the caller's function must not leave a wait halfway
    }
    return interrupted_;
  }

 private:
  const std::function<bool()>* keep_waiting_;  // a function of the user
  bool interrupted_ = false;
};

/// A deadline, counted from construction. A value type.
class Deadline {
 public:
  /// `interrupt` ends the wait early. It must outlive this object and its copies; null means that nothing interrupts.
  Deadline(const Clock& clock, std::chrono::nanoseconds timeout, InterruptCheck* interrupt = nullptr,
           std::optional<std::chrono::nanoseconds> polled_since = std::nullopt)
      : clock_(&clock), start_(clock.steady()), timeout_(timeout),
        interrupt_(interrupt != nullptr && interrupt->can_interrupt() ? interrupt : nullptr),
        polled_since_(polled_since) {}

  /// Counts by the system's clock, for callers that have only a timeout.
  template <class Rep, class Period>
  Deadline(std::chrono::duration<Rep, Period> timeout)  // NOLINT(google-explicit-constructor): it is a deadline
      : Deadline(system_clock(), timeout) {}

  /// Returns the remaining time, 0 after an interruption; the maximum duration means unlimited and does not decrease.
  std::chrono::nanoseconds remaining() const {
    if (interrupt_ != nullptr && interrupt_->is_interrupted()) return std::chrono::nanoseconds(0);
    if (timeout_ == std::chrono::nanoseconds::max()) return timeout_;
    const auto passed = clock_->steady() - start_;
    return passed < timeout_ ? timeout_ - passed : std::chrono::nanoseconds(0);
  }
  /// Returns the interrupt check, or null. Code that cannot use `Clock::wait_until` sleeps in short intervals and polls
  /// it.
  InterruptCheck* interrupt() const { return interrupt_; }
  /// Returns the time of the first of several polls, or no value if the call does not poll.
  std::optional<std::chrono::nanoseconds> polled_since() const { return polled_since_; }

 private:
  const Clock* clock_;
  std::chrono::nanoseconds start_;
  std::chrono::nanoseconds timeout_;
  InterruptCheck* interrupt_;
  std::optional<std::chrono::nanoseconds> polled_since_;
};

/// The deadline of a call that a user limits with a `Wait`, together with its interrupt check. Not thread-safe.
class CallDeadline : private InterruptCheck, public Deadline {
 public:
  /// The function of `wait` must outlive this object.
  explicit CallDeadline(const Wait& wait)
      : InterruptCheck(wait.keep_waiting()), Deadline(system_clock(), wait.timeout(), this, wait.polled_since()) {}
};

/// Formats a wall time as `2026-11-15T18:20:00Z`.
std::string format_utc(std::chrono::nanoseconds wall);

/// Returns the milliseconds since `start`, a time of the clock's `steady()`.
double milliseconds_since(const Clock& clock, std::chrono::nanoseconds start);

}  // namespace kiln
