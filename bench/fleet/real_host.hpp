#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/fleet/scenario.hpp"
#include "remote/courier.hpp"
#include "remote/fleet_claims.hpp"
#include "remote/guarded_store.hpp"
#include "remote/remote_store.hpp"
#include "trust/policy.hpp"
#include "trust/signer.hpp"

namespace kiln::fleet {

/// Where the real servers are, and who is believed.
struct RealPlace {
  std::string http;
  std::string redis;
  std::shared_ptr<const TrustPolicy> trust;
  std::shared_ptr<const Signer> signer;
  Observer observer;
};

/// One host against real servers: kiln's own store, claims, guards and courier, with connections of their own, on
/// threads of a process that all hosts share. Of it all only the compile is not real: it sleeps as long as it would
/// take. Each lane is a thread that calls `road`.
class RealHost {
 public:
  RealHost(const Scenario& scenario, const RealPlace& place);

  /// Has the kernel of this key when it returns, as warm/resolver.cpp goes about it.
  void road(std::uint32_t key);
  /// Waits for the uploads.
  void finish() { courier_->stop(); }

  std::uint64_t compiles() const { return compiles_; }
  std::uint64_t hits() const { return hits_; }
  std::uint64_t refused() const { return store_->counts().refused; }

 private:
  bool look(std::uint32_t key);
  void compile(std::uint32_t key);

  const Scenario& scenario_;
  std::shared_ptr<Courier> courier_;
  std::shared_ptr<GuardedStore> store_;
  std::unique_ptr<FleetClaims> claims_;
  std::atomic<std::uint64_t> compiles_{0};
  std::atomic<std::uint64_t> hits_{0};
};

}  // namespace kiln::fleet
