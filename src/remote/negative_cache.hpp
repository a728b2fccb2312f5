// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <unordered_map>

#include <kiln/key.hpp>

#include "remote/fleet_policy.hpp"
#include "remote/jitter.hpp"

namespace kiln {

/// A bounded cache of recent misses of a server. Pure: the caller passes the time. Not thread-safe.
class NegativeCache {
 public:
  using Time = std::chrono::nanoseconds;

  NegativeCache(const FleetPolicy& policy, Jitter jitter);

  /// Returns whether the name is a recent miss that is not worth another request.
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
