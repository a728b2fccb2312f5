#pragma once

#include <chrono>
#include <memory>

#include "claim/claims.hpp"
#include "observe/observer.hpp"
#include "remote/courier.hpp"
#include "remote/fleet_claims.hpp"
#include "remote/guarded_store.hpp"
#include "session/config.hpp"
#include "store/store.hpp"
#include "trust/policy.hpp"

namespace kiln {

/// What a session has of other hosts, as its configuration says: the remote store and the fleet's claims, each behind
/// its guard, and the courier that works for both. Nothing is opened and no thread started before the first question. A
/// part that cannot be had is an event and left out. Any thread.
class Fleet {
 public:
  Fleet(const Config& config, const TrustPolicy& policy, const Observer& observer);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// Null where there is none.
  const std::shared_ptr<Store>& store() const { return store_; }
  Claims* claims() const { return claims_.get(); }
  /// Waits until all that was given to send up to now is sent, at most this long; false: something is left.
  bool drain(std::chrono::nanoseconds limit) { return courier_->drain(limit); }
  /// Sends what still waits to be sent, within the policy's limit, and lets go of what is held.
  void finish();

 private:
  std::shared_ptr<Courier> courier_;
  std::shared_ptr<Store> store_;
  std::unique_ptr<Claims> claims_;
};

}  // namespace kiln
