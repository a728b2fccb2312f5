// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "core/server_time_budget.hpp"
#include "events/event_emitter.hpp"
#include "remote/background_queue.hpp"
#include "remote/circuit_breaker.hpp"
#include "remote/fleet_policy.hpp"

namespace kiln {

/// Controls access to one server: applies the time budget, breaks the circuit after a failure and probes the server
/// from the background queue. Emits RemoteUnavailable with the reason when the circuit becomes slow or opens, and
/// RemoteRecovered when it closes. Thread-safe.
class ServerGuard : public std::enable_shared_from_this<ServerGuard> {
 public:
  using Time = std::chrono::nanoseconds;
  struct Params {
    std::string name;               ///< human-readable: "https://cache.example/kiln"
    std::string origin = "remote";  ///< origin of its events, which metrics use as a label: remote, lease
    /// Checks whether the server responds; called on the background thread and by background requests (recheck).
    std::function<Status(const Deadline&)> probe;
    std::shared_ptr<BackgroundQueue> background_queue;
    FleetPolicy policy;
    EventEmitter emitter;
    const Clock* clock = &system_clock();
  };
  static std::shared_ptr<ServerGuard> make(Params params);

  /// Returns the time limit of a request now: the rest of `budget` less the policy's `reserved_fraction`, so that a
  /// caller that waits for the whole limit stays within the budget. A background request, or one without a budget, has
  /// at most the query timeout of the circuit. 0 means that no request must be sent.
  Time time_budget(const ServerTimeBudget* budget);
  /// Returns whether a request with this budget could be sent, if it had time left. `budget` can be null.
  bool accepts(const ServerTimeBudget* budget) const;
  /// Returns whether the server is known to answer, so that uploads are worth their time.
  bool is_available() const;
  /// Returns whether only background requests use the server.
  bool is_slow() const;
  /// Returns how long a caller waits for a background query that is in progress when it begins to wait: 0 if the server
  /// is slow, because it has already cost its timeout.
  Time urgent_timeout() const;
  /// Called before a background request compiles because the circuit is open: probes the server if the last probe was
  /// long ago, or waits for a probe in progress, for at most the timeout of a probe and only until a caller waits for
  /// the request. No effect for other requests.
  void recheck(const ServerTimeBudget* budget);
  /// Returns how often an open circuit was closed.
  unsigned recoveries() const { return recoveries_; }

  /// One request to the server. Its destructor counts it as successful unless another result was recorded, and charges
  /// its time to the budget.
  class Call {
   public:
    /// `budget` can be null. `timeout` is the time limit of the request.
    Call(ServerGuard& guard, ServerTimeBudget* budget, Time timeout);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    /// Records a failure. Unavailable, Io and Denied open the circuit. TimedOut makes it slow or opens it. Corrupt
    /// counts as a rejected response. Other codes are errors of the caller and are ignored.
    void failed(const Error& error);
    /// Records that no response came until the request ended before its time limit.
    void timed_out(const Error& error);
    /// Records a response that was rejected.
    void rejected();
    /// Records that the caller canceled the request, which says nothing about the server.
    void cancelled() { reported_ = true; }

   private:
    ServerGuard& guard_;
    ServerTimeBudget* budget_;
    Time timeout_;
    Time start_;
    bool reported_ = false;
  };

 private:
  explicit ServerGuard(Params params);
  void on_success(Time took);
  void on_failure(const Error& error);
  void on_timeout(const Error& error, Time timeout);
  void on_rejected();
  void emit_recovered() const;
  void open_circuit(const std::string& reason);
  void schedule_probe();
  void probe();
  void run_probe(const ServerTimeBudget* budget);

  const Params params_;
  mutable Mutex mutex_;
  Condition probed_;
  CircuitBreaker breaker_ KILN_GUARDED_BY(mutex_);
  std::atomic<unsigned> recoveries_{0};
  std::atomic<bool> probe_not_scheduled_{false};  // a probe could not be scheduled: out of memory
};

}  // namespace kiln
