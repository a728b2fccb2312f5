#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/mutex.hpp"

namespace kiln {

/// Time as the rest of kiln sees it, so that tests can hold it still. Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Wall time, comparable with the times of files.
  virtual std::chrono::nanoseconds wall() const = 0;
  /// Never goes back; for durations and deadlines.
  virtual std::chrono::nanoseconds steady() const = 0;
  virtual void sleep(std::chrono::nanoseconds time) const = 0;
  /// Waits under the mutex until the condition is notified, at most `time` by this clock. Wakes for no reason now and
  /// then, as conditions do.
  virtual void wait(Condition& condition, Mutex& mutex, std::chrono::nanoseconds time) const KILN_REQUIRES(mutex);
};

/// The operating system's time. Has no state: a reference to it is always good.
const Clock& system_clock();

/// For a thread that must see to something else while it waits, such as Ctrl-C in an interpreter. While this lives,
/// waits of the thread that made it (Clock::wait) wake every so often and ask `goes_on`, under no lock of the wait's.
/// When that says no, every Deadline of the thread is over, and whoever waits ends as if his time had run out.
class Attention {
 public:
  explicit Attention(std::function<bool()> goes_on);
  ~Attention();
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  /// Whether the calling thread is not to wait any more.
  static bool is_over();

 private:
  friend class Clock;
  const std::function<bool()> goes_on_;
  Attention* const outer_;
  bool over_ = false;
};

/// The end of a limit of time that began when this was made. A value.
class Deadline {
 public:
  Deadline(const Clock& clock, std::chrono::nanoseconds limit) : clock_(clock), start_(clock.steady()), limit_(limit) {}
  /// A limit that is no limit stays whole.
  std::chrono::nanoseconds left() const {
    if (Attention::is_over()) return std::chrono::nanoseconds(0);
    if (limit_ == std::chrono::nanoseconds::max()) return limit_;
    const auto passed = clock_.steady() - start_;
    return passed < limit_ ? limit_ - passed : std::chrono::nanoseconds(0);
  }

 private:
  const Clock& clock_;
  std::chrono::nanoseconds start_;
  std::chrono::nanoseconds limit_;
};

/// A moment of wall time as `2026-11-15T18:20:00Z`.
std::string utc_text(std::chrono::nanoseconds wall);

/// Milliseconds since a moment of the clock's steady time.
double milliseconds_since(const Clock& clock, std::chrono::nanoseconds start);

}  // namespace kiln
