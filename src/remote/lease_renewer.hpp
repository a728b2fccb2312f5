// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// Renews the leases that this process holds. One thread serves all of them; it starts with the first lease and ends
/// with the last. Thread-safe.
class LeaseRenewer {
 public:
  using Time = std::chrono::nanoseconds;
  enum class RenewResult : unsigned char {
    Renewed,
    Lost,     ///< another owner has it, or it has expired
    Unknown,  ///< the lease table could not be reached
  };
  struct Renewal {
    Time lease{};
    Time maximum{};                                       ///< maximum time for which it is renewed
    Time since{};                                         ///< time of the request that acquired it
    std::function<RenewResult()> renew;                   ///< called on the renewal thread
    std::function<void(const std::string& reason)> lost;  ///< called once, on the renewal thread
  };

  explicit LeaseRenewer(const Clock& clock) : clock_(clock) {}
  ~LeaseRenewer();
  LeaseRenewer(const LeaseRenewer&) = delete;
  LeaseRenewer& operator=(const LeaseRenewer&) = delete;

  /// Starts renewing a lease. Returns the id for `forget`.
  std::uint64_t add(const Renewal& kept);
  /// Stops renewing. No renewal starts after this call; one may still be running.
  void forget(std::uint64_t number);

 private:
  struct ScheduledRenewal {
    Renewal kept;
    Time renewed{};  // time of the last known renewal
    Time next{};
  };
  void start() KILN_REQUIRES(mutex_);
  void run();
  /// Renews the lease that is due next, or waits until one is due.
  Status renew_next();
  void renew(std::uint64_t number, const Renewal& kept);

  const Clock& clock_;
  Mutex mutex_;
  Condition changed_;
  std::map<std::uint64_t, ScheduledRenewal> rows_ KILN_GUARDED_BY(mutex_);
  std::uint64_t numbers_ KILN_GUARDED_BY(mutex_) = 0;
  bool running_ KILN_GUARDED_BY(mutex_) = false;
  std::thread thread_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
