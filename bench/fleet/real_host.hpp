// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/fleet/scenario.hpp"
#include "remote/background_queue.hpp"
#include "remote/fleet_claims.hpp"
#include "remote/guarded_store.hpp"
#include "remote/remote_store.hpp"
#include "trust/policy.hpp"
#include "trust/signer.hpp"

namespace kiln::fleet {

/// Addresses of the real servers, and the trust configuration.
struct ServerEndpoints {
  std::string http;
  std::string redis;
  std::shared_ptr<const TrustPolicy> trust;
  std::shared_ptr<const Signer> signer;
  EventEmitter emitter;
};

/// One host with real servers: kiln's own store, claims, guards and background queue with their own connections, on
/// threads of a process that all hosts share. Only the compile is simulated: it sleeps for the compile time. Each
/// thread of a host calls `resolver`.
class RealHost {
 public:
  RealHost(const Scenario& scenario, const ServerEndpoints& place);

  /// Gets the kernel of this key with the sequence of engine/resolver.cpp.
  void resolver(std::uint32_t key);
  /// Waits for the uploads.
  void finish() { background_queue_->stop(); }

  std::uint64_t compiles() const { return compiles_; }
  std::uint64_t hits() const { return hits_; }
  std::uint64_t rejected() const { return store_->counts().skipped; }

 private:
  bool look(std::uint32_t key, const RequestContext& context);
  /// Simulates the compile and publishes its result within `context`.
  void compile(std::uint32_t key, const RequestContext& context);

  const Scenario& scenario_;
  std::shared_ptr<BackgroundQueue> background_queue_;
  std::shared_ptr<GuardedStore> store_;
  std::unique_ptr<FleetClaims> claims_;
  std::atomic<std::uint64_t> compiles_{0};
  std::atomic<std::uint64_t> hits_{0};
};

}  // namespace kiln::fleet
