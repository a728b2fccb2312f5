#pragma once

#include <chrono>
#include <functional>

namespace kiln {

/// The total time that remote servers may use for one `get` on this thread. All lookups and claims of the call share
/// it. Stores on this host do not use it. The constructor makes it the current budget of this thread; the destructor
/// restores the enclosing one. Time spent waiting for another process that compiles is not server time and is not
/// counted. Not thread-safe: it belongs to the thread that created it.
class ServerTimeBudget {
 public:
  /// A `time` of 0 means that no server is queried. `over` returns true when the result is no longer needed while the
  /// work is still running. It is called on this thread only.
  explicit ServerTimeBudget(std::chrono::nanoseconds time, std::function<bool()> over = {});
  ~ServerTimeBudget();
  ServerTimeBudget(const ServerTimeBudget&) = delete;
  ServerTimeBudget& operator=(const ServerTimeBudget&) = delete;

  /// Returns the current budget of this thread, or null if none is set.
  static ServerTimeBudget* current();
  /// Returns the remaining time of the current budget, at most `maximum`. Returns `maximum` if no budget is set.
  static std::chrono::nanoseconds capped(std::chrono::nanoseconds maximum);
  /// Returns true if the result of this thread's server request is no longer needed, regardless of the remaining time.
  /// Code that waits for a response checks this several times a second and then fails with `Code::Cancelled`.
  static bool is_cancelled();
  /// Returns true if `over` can become true. Waiting code then sleeps in short intervals.
  static bool is_cancellable();
  /// Charges server time to the current budget. Does nothing if no budget is set.
  static void charge(std::chrono::nanoseconds time);

  /// Makes stores skip their negative cache from now on, because another process may have published the entry recently.
  void bypass_negative_cache() { fresh_ = true; }
  bool bypasses_negative_cache() const { return fresh_; }
  std::chrono::nanoseconds remaining() const { return remaining_; }

 private:
  std::chrono::nanoseconds remaining_;
  std::function<bool()> over_;
  bool fresh_ = false;
  ServerTimeBudget* outer_;
};

}  // namespace kiln
