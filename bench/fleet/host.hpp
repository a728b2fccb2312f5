// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "bench/fleet/servers.hpp"
#include "remote/circuit_breaker.hpp"
#include "remote/jitter.hpp"
#include "remote/lease_waiter.hpp"
#include "remote/negative_cache.hpp"
#include "remote/wait_account.hpp"

namespace kiln::fleet {

constexpr std::uint32_t kNone = 0xffffffffU;

/// One thread of a host that gets one kernel. It waits for one thing at a time.
struct SimulatedThread {
  enum class Reason : std::uint8_t { Held, TakenOver, Hedged, GaveUp, NoBudget, ServerGone, Skipped };

  std::uint32_t key = kNone;
  std::uint32_t claim = kNone;
  std::uint32_t token = 0;
  Op op = Op::ReadHint;          ///< last request
  bool fresh = false;            ///< bypasses the negative cache
  bool decided = false;          ///< one last lookup, then it compiles
  bool retried = false;          ///< has repeated a lookup that timed out
  bool refused = false;          ///< was not served by the store, and uploads nothing
  bool slept = false;            ///< waits for a holder: requests during the wait are not charged
  Reason reason = Reason::Held;  ///< reason for the compile
  Time remaining{};              ///< remaining budget
  Time sent{};                   ///< time of the last request
  Time timeout{};                ///< of the last request
  Time give_up{};                ///< time at which it stops waiting for others
  std::unique_ptr<LeaseWaiter> wait;
};

/// A background task of a host: an upload or the release of a claim. Tasks run in FIFO order.
struct BackgroundTask {
  std::uint32_t key = kNone;
  std::uint32_t claim = kNone;  ///< kNone means an upload
  Op op = Op::CheckAction;      ///< the request in progress
};

/// A claim from its acquisition to its release; it may outlive the thread's use of it.
struct HeldClaim {
  std::uint32_t host = 0;
  std::uint32_t key = 0;
  std::uint32_t token = 0;
  Time stalled_from{-1};
  Time stalled_until{-1};
  bool open = false;
};

/// The processes of one host, modeled as one. They share the disk cache and the claims of the host.
struct Host {
  Host(const Scenario& scenario, std::uint32_t number)
      : jitter(scenario.seed * 1'000'003U + number), guards{CircuitBreaker(scenario.policy, Jitter(jitter_seed(1))),
                                                            CircuitBreaker(scenario.policy, Jitter(jitter_seed(2)))},
        absent(scenario.policy, Jitter(jitter_seed(3))), account(scenario.policy), lanes(scenario.lanes) {}

  std::uint64_t jitter_seed(std::uint64_t n) {
    return static_cast<std::uint64_t>(jitter.unit() * 0x1.0p53) ^ (n << 54U);
  }
  CircuitBreaker& guard(Op op) { return guards[is_lease(op) ? 1 : 0]; }

  Jitter jitter;
  CircuitBreaker guards[2];  // for objects, for leases
  NegativeCache absent;
  WaitAccount account;
  std::vector<SimulatedThread> lanes;
  std::vector<std::uint32_t> waiting;  ///< lanes that wait until they may ask the store
  std::deque<BackgroundTask> tasks;
  std::uint32_t batch = 0;
  std::uint32_t next = 0;  ///< next key of the batch for a free thread
  std::uint32_t done = 0;
  unsigned connections = 0;  ///< to the store
  Time started{};
  Time probe_sent[2]{};  ///< time of the last probe of each server
  Time task_sent{};      ///< time of the last request of a background task
  bool lease_connected = false;
};

}  // namespace kiln::fleet
