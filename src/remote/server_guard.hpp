#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "observe/observer.hpp"
#include "remote/breaker.hpp"
#include "remote/courier.hpp"
#include "remote/fleet_policy.hpp"

namespace kiln {

/// Stands before one server: says whether it is asked now and how long it may take, keeps account of what it took, and
/// has it probed on the courier's thread once it has failed. Any thread. Events: RemoteUnavailable when it is given up
/// (with why), RemoteBack when it answers again.
class ServerGuard : public std::enable_shared_from_this<ServerGuard> {
 public:
  using Time = std::chrono::nanoseconds;
  struct Parts {
    std::string name;                   ///< for people: "https://cache.example/kiln"
    std::string origin = "remote";      ///< of its events, by which counts tell servers apart: remote, lease
    std::function<Status(Time)> probe;  ///< whether it answers; called on the courier's thread
    std::shared_ptr<Courier> courier;
    FleetPolicy policy;
    Observer observer;
    const Clock* clock = &system_clock();
  };
  static std::shared_ptr<ServerGuard> make(Parts parts);

  /// How long it may take now: what is left of the thread's Allowance (of the policy's budget where there is none).
  /// Less the policy's `least_part`, so that whoever waits until that limit has passed is still within the budget.
  /// Zero: do not ask.
  Time allowed();
  bool closed() const;

  /// One question to the server. Destroyed without a word it counts as answered. Its time is spent from the Allowance.
  class Question {
   public:
    explicit Question(ServerGuard& guard);
    ~Question();
    Question(const Question&) = delete;
    Question& operator=(const Question&) = delete;
    /// It failed: TimedOut, Unavailable and Io give the server up; Refused (we may not) does too; Corrupt counts as an
    /// answer that had to be rejected; other codes are the caller's own affair.
    void failed(const Error& error);
    /// It answered, and what it said had to be rejected.
    void rejected();

   private:
    ServerGuard& guard_;
    Time start_;
    bool told_ = false;
  };

 private:
  explicit ServerGuard(Parts parts);
  void silent(const Error& error);
  void refuted();
  void give_up(const std::string& why);
  void arrange_probe();
  void probe();

  const Parts parts_;
  mutable Mutex mutex_;
  Breaker breaker_ KILN_GUARDED_BY(mutex_);
  std::atomic<bool> unarranged_{false};  // a probe is due for which there was no memory
};

}  // namespace kiln
