#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <unordered_map>

#include <kiln/key.hpp>

#include "remote/fleet_policy.hpp"
#include "remote/jitter.hpp"

namespace kiln {

/// What a server did not have a moment ago. Bounded; pure: it is told the time. Not thread-safe.
class NegativeCache {
 public:
  using Time = std::chrono::nanoseconds;

  NegativeCache(const FleetPolicy& policy, Jitter jitter);

  /// Whether it was absent so lately that asking again is not worth it.
  bool absent(const Digest& name, Time now);
  void remember(const Digest& name, Time now);
  void forget(const Digest& name);
  std::size_t size() const { return until_.size(); }

 private:
  FleetPolicy policy_;
  Jitter jitter_;
  std::list<Digest> order_;  // oldest first
  struct Until {
    Time time{};
    std::list<Digest>::iterator place;
  };
  std::unordered_map<Digest, Until> until_;
};

}  // namespace kiln
