// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "remote/fleet_policy.hpp"

namespace kiln {

/// The time that the background requests of a host may still wait for a server. Waits are charged; a hit earns a part
/// of the compile time that it saved, and passing time earns a little, so that a server that has recovered is used
/// again. An overloaded server costs more than it saves: then the account is empty, and the host compiles most units
/// without asking. So servers never delay a host by much more than `initial_wait`. Debt is at most `max_wait`, because
/// many queries that one pause of a server delays must not keep the host from it for hours. A pure state machine: the
/// caller passes the time. Not thread-safe.
class WaitAccount {
 public:
  using Time = std::chrono::nanoseconds;

  explicit WaitAccount(const FleetPolicy& policy) : policy_(policy), balance_(policy.initial_wait) {}

  enum class Admission : unsigned char {
    Ask,   ///< send its queries, all of them
    Wait,  ///< ask again when a query has ended: the server has not shown yet that it answers so many
    Skip,  ///< send none and compile
  };
  /// Returns what a new request may do.
  Admission admit(Time now) {
    if (last_) earn(part_of(std::max(now - *last_, Time(0)), policy_.wait_per_time));
    last_ = now;
    if (balance_ <= queries_ * expected_) return Admission::Skip;
    if (queries_ < max_queries_) return Admission::Ask;
    return slow_ ? Admission::Skip : Admission::Wait;
  }
  void begin_query() { ++queries_; }
  /// Records the end of a query, with an answer or after a timeout.
  void end_query(Time took, bool answered) {
    queries_ -= queries_ > 0 ? 1 : 0;
    balance_ = std::max(balance_ - took, -policy_.max_wait);
    expected_ = (7 * expected_ + took) / 8;
    slow_ = !answered;
    max_queries_ = answered ? std::min(max_queries_ + 1, kMaxQueries) : 1;
  }
  /// Records that a server that was gone answers again.
  void on_recovered() {
    balance_ = std::max(balance_, policy_.initial_wait / 4);
    slow_ = false;
  }
  /// Records a hit that saved a compile of this time; 0 if it is not known.
  void saved(Time cost) { earn(part_of(cost, policy_.wait_per_saved)); }

 private:
  static constexpr int kMaxQueries = 1 << 20;

  static Time part_of(Time time, double part) {
    return Time(static_cast<std::int64_t>(static_cast<double>(time.count()) * part));
  }
  void earn(Time time) { balance_ = std::min(balance_ + time, policy_.max_wait); }

  FleetPolicy policy_;
  Time balance_;
  Time expected_{};           // moving average of the time of a query
  std::optional<Time> last_;  // time of the last request
  int queries_ = 0;           // in flight
  int max_queries_ = 1;  // of new requests; grows with each answer, so that a new host does not overload a slow server
  bool slow_ = false;    // the last query was not answered
};

}  // namespace kiln
