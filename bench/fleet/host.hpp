#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "bench/fleet/servers.hpp"
#include "remote/breaker.hpp"
#include "remote/jitter.hpp"
#include "remote/lease_wait.hpp"
#include "remote/negative_cache.hpp"

namespace kiln::fleet {

constexpr std::uint32_t kNone = 0xffffffffU;

/// One thread of a host, on its way to one kernel. It waits for one thing at a time.
struct Lane {
  enum class Why : std::uint8_t { Held, TakenOver, Hedged, GaveUp, NoBudget, ServerGone };

  std::uint32_t key = kNone;
  std::uint32_t claim = kNone;
  std::uint32_t token = 0;
  Op op = Op::ReadHint;    ///< what it asked last
  bool fresh = false;      ///< asks even for what was absent a moment ago
  bool decided = false;    ///< a last look, then it compiles
  bool connected = false;  ///< to the store
  bool napped = false;     ///< waits for a holder: what it asks meanwhile is not counted
  Why why = Why::Held;     ///< it compiles
  Time left{};             ///< of the budget
  Time sent{};             ///< when it asked
  Time give_up{};          ///< when it waits no longer for others
  std::unique_ptr<LeaseWait> wait;
};

/// What a host's courier has to do: upload what was compiled, or let a claim go. In the order in which it was sent.
struct Errand {
  std::uint32_t key = kNone;
  std::uint32_t claim = kNone;  ///< kNone: an upload
  Op op = Op::CheckAction;      ///< which of its questions is under way
};

/// A claim on its way from taking to letting go; it outlives the lane's interest in it.
struct HeldClaim {
  std::uint32_t host = 0;
  std::uint32_t key = 0;
  std::uint32_t token = 0;
  Time stalled_from{-1};
  Time stalled_until{-1};
  bool open = false;
};

/// The processes of one host, folded into one: what they share is the disk store and the claims of the host.
struct Host {
  Host(const Scenario& scenario, std::uint32_t number)
      : jitter(scenario.seed * 1'000'003U + number), guards{Breaker(scenario.policy, Jitter(jitter_seed(1))),
                                                            Breaker(scenario.policy, Jitter(jitter_seed(2)))},
        absent(scenario.policy, Jitter(jitter_seed(3))), lanes(scenario.lanes) {}

  std::uint64_t jitter_seed(std::uint64_t n) {
    return static_cast<std::uint64_t>(jitter.unit() * 0x1.0p53) ^ (n << 54U);
  }
  Breaker& guard(Op op) { return guards[is_lease(op) ? 1 : 0]; }

  Jitter jitter;
  Breaker guards[2];  // of bodies, of leases
  NegativeCache absent;
  std::vector<Lane> lanes;
  std::deque<Errand> errands;
  std::uint32_t batch = 0;
  std::uint32_t next = 0;  ///< key of the batch that no lane has taken yet
  std::uint32_t done = 0;
  Time started{};
  bool lease_connected = false;
};

}  // namespace kiln::fleet
