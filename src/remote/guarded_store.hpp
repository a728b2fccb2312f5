// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "cache/store.hpp"
#include "events/event_emitter.hpp"
#include "remote/background_queue.hpp"
#include "remote/fleet_policy.hpp"
#include "remote/server_guard.hpp"

namespace kiln {

/// A wrapper around a remote store that bounds its cost. Lookups take at most the request's `ServerTimeBudget`,
/// concurrent lookups of a key share one request, recent misses are not requested again, and puts are uploaded later by
/// the background queue. If the server is down, this store returns misses immediately. Thread-safe.
///
/// It returns no errors of its own. An error of the inner store is passed to the guard, which reports it, and is a miss
/// here. Code::Corrupt means that the inner store rejected the server's data.
///
/// A `put` succeeds before anything is sent, because no caller could handle a failed upload. An upload that does not
/// fit into the queue, or that is queued while the circuit is open or for a request whose budget is empty, is dropped,
/// counted and reported (UploadDropped). Background lookups have a WaitAccount.
/// A finished upload is reported too (Uploaded).
class GuardedStore final : public Store {
 public:
  struct Params {
    std::shared_ptr<Store> inner;
    std::shared_ptr<ServerGuard> guard;
    std::shared_ptr<BackgroundQueue> background_queue;
    FleetPolicy policy;
    EventEmitter emitter;
    const Clock* clock = &system_clock();
  };
  explicit GuardedStore(Params params);

  Result<std::optional<Hit>> get(const ArtifactKey& key, const RequestContext& context) override;
  Status put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& context) override;
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit,
                                                     const RequestContext& context) override;
  Status add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                            const RequestContext& context) override;
  bool is_writable() override;
  std::string describe() const override;

  struct Counts {
    std::uint64_t requests = 0;      ///< lookups that were sent to the server
    std::uint64_t deduplicated = 0;  ///< answered by the negative cache or by a lookup in progress
    std::uint64_t skipped = 0;       ///< not sent: no time left, or the circuit is open
    std::uint64_t uploaded = 0;      ///< artifacts and dependency sets
    std::uint64_t dropped = 0;
  };
  Counts counts() const;

 private:
  class State;
  class Upload;
  struct Lookup;
  void send(const RequestContext& context, const std::shared_ptr<Upload>& upload, std::uint64_t bytes);

  const std::shared_ptr<State> state_;  // background tasks may outlive this object
};

}  // namespace kiln
