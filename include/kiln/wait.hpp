// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>

namespace kiln {

/// The value of a time limit that means no limit.
inline constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();

namespace detail {
/// Converts a timeout. One that is too long for nanoseconds is kForever.
template <class Rep, class Period>
constexpr std::chrono::nanoseconds to_timeout(std::chrono::duration<Rep, Period> timeout) {
  using Seconds = std::chrono::duration<double>;
  if (!(Seconds(timeout) < Seconds(kForever))) return kForever;
  if (Seconds(timeout) < Seconds(0)) return std::chrono::nanoseconds(0);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(timeout);
}
}  // namespace detail

/// The limits of a call that waits: a timeout and, optionally, a function that ends the wait early. A duration converts
/// to it. It refers to the function and does not copy it: create it in the argument list of the call.
class Wait {
 public:
  template <class Rep, class Period>
  Wait(std::chrono::duration<Rep, Period> timeout)  // NOLINT(google-explicit-constructor): a timeout is a wait
      : timeout_(detail::to_timeout(timeout)) {}
  /// `keep_waiting` is called several times a second on the waiting thread, never while kiln holds a lock. If it
  /// returns false, the wait ends as if it had timed out, and the function is not called again. An
  /// exception from it ends the wait in the same way.
  template <class Rep, class Period>
  Wait(std::chrono::duration<Rep, Period> timeout, const std::function<bool()>& keep_waiting)
      : timeout_(detail::to_timeout(timeout)), keep_waiting_(&keep_waiting) {}
  /// A temporary function would end before the wait.
  template <class Rep, class Period>
  Wait(std::chrono::duration<Rep, Period> timeout, std::function<bool()>&& keep_waiting) = delete;

  /// Returns the limits of a call that polls: it does not wait, but has the priority of one that does. `first` is the
  /// time of the caller's first poll. A failure since then is returned; other calls would try the unit again instead.
  static Wait poll(std::chrono::steady_clock::time_point first) {
    Wait wait(std::chrono::nanoseconds(0));
    wait.polled_since_ = first.time_since_epoch();
    return wait;
  }

  std::chrono::nanoseconds timeout() const { return timeout_; }
  /// Returns null if there is no such function.
  const std::function<bool()>* keep_waiting() const { return keep_waiting_; }
  /// Returns the time of the first poll, since the epoch of its clock, or no value if the call does not poll.
  std::optional<std::chrono::nanoseconds> polled_since() const { return polled_since_; }

 private:
  std::chrono::nanoseconds timeout_;
  const std::function<bool()>* keep_waiting_ = nullptr;  // a function of the user
  std::optional<std::chrono::nanoseconds> polled_since_;
};

}  // namespace kiln
