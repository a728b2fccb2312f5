#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include <kiln/artifact.hpp>
#include <kiln/result.hpp>

#include "backends/compiler.hpp"
#include "base/clock.hpp"
#include "base/files/file_digest_cache.hpp"
#include "cache/build_history.hpp"
#include "cache/claims.hpp"
#include "cache/store.hpp"
#include "core/dependency_check_cache.hpp"
#include "core/recipe.hpp"
#include "events/event_emitter.hpp"
#include "worker/worker_slots.hpp"

namespace kiln {

/// The result of resolving a recipe.
struct ResolveResult {
  Artifact artifact;  ///< including its dependency set
  RequestKey request;
  ArtifactKey key;  ///< for an artifact that cannot be cached: the key that it would have had
  Origin origin = Origin::Compiled;
  std::string uncacheable_reason = {};  ///< the reason why it is not cached; empty if it is
  double ms = 0;                        ///< time from the request to the result
  std::uint64_t flow = 0;               ///< from the recipe
  bool is_stored = false;               ///< a store or a bundle has it, so its bytes can be fetched again
  bool is_slim = false;                 ///< bytes, dependency set and log were dropped, because it is loaded and stored

  /// Returns a copy without the parts that can be fetched again.
  ResolveResult slim() const {
    ResolveResult rest{
        {{}, artifact.target, artifact.entries, {}, {artifact.metadata.unit, artifact.metadata.compiler}},
        request,
        key,
        origin,
        uncacheable_reason,
        ms,
        flow,
        is_stored,
        true};
    rest.artifact.metadata.cost_ms = artifact.metadata.cost_ms;
    return rest;
  }
};

/// Resolves a recipe to an artifact: look up, claim on this host, look up, claim in the fleet, look up, compile, store.
/// The store is checked after every claim attempt, regardless of its outcome, before anything is compiled. Exactly one
/// of the waiting processes takes over from a holder that makes no progress. A failing store or failing claims never
/// fail the result: they cost a compile, and an event reports the reason. Thread-safe.
class Resolver {
 public:
  /// The collaborators. None is owned; members that can be null say so.
  struct Params {
    Store* store = nullptr;    ///< null means that nothing is looked up or stored
    Claims* claims = nullptr;  ///< among the processes of this host; null means that every process compiles for itself
    Claims* fleet = nullptr;   ///< among hosts, used by the process that holds the claim of its host; null means that
                               ///< hosts do not wait
    const WorkerSlots* slots = nullptr;  ///< shows holders that a caller waits in `claims`; may be null
    BuildHistory* history = nullptr;     ///< null means that `explain` has no earlier builds
    FileDigestCache* digests = nullptr;
    const Clock* clock = &system_clock();
    EventEmitter emitter;
    bool compile_allowed = true;   ///< false means that a miss is `Code::Denied`
    bool has_remote_tier = false;  ///< true if a tier of the store is a server
    std::chrono::nanoseconds server_time_budget =
        std::chrono::milliseconds(100);                                      ///< time budget for servers per `get`
    std::chrono::milliseconds lease_ttl{0};                                  ///< time after which a fleet claim expires
    std::chrono::milliseconds unknown_cost_wait = std::chrono::seconds(30);  ///< wait for a unit without recorded cost
  };
  explicit Resolver(Params params)
      : params_(std::move(params)), dependency_checks_(std::make_unique<DependencyCheckCache>(*params_.clock)) {}

  /// Looks up the recipe in the tiers without compiling. `rejected`, which a driver rejected, counts as a miss.
  Result<std::optional<ResolveResult>> lookup(const Recipe& recipe, const Bytes* rejected = nullptr);
  /// Looks up the recipe in the tiers and compiles it on a miss.
  Result<ResolveResult> get(const Recipe& recipe, Compiler& compiler, const Bytes* rejected = nullptr);

 private:
  /// Looks up the recipe in the tiers of this host, without querying a server.
  Result<std::optional<ResolveResult>> lookup_local(const Recipe& recipe, const Bytes* rejected);
  std::optional<ResolveResult> find_in_store(const Recipe& recipe, const RequestKey& request, const Bytes* rejected);
  void emit_miss(const Recipe& recipe) const;
  std::chrono::milliseconds peer_wait_timeout(const Recipe& recipe) const;
  /// The claims, the time to wait for another holder, and the number of takeovers of a hung holder.
  struct Participant {
    Claims& claims;
    std::chrono::milliseconds wait;
    int max_takeovers;
  };
  /// Returns the result that the holder published, or sets `claim`. Does neither if the claim was not acquired in time.
  /// The store was checked after the last wait.
  std::optional<ResolveResult> claim_or_find(const Participant& participant, const Recipe& recipe,
                                             const Bytes* rejected, std::unique_ptr<Claim>& claim);
  std::chrono::milliseconds time_left(const Participant& participant, const Recipe& recipe,
                                      std::chrono::nanoseconds start) const;
  /// Acquires a claim on the request or on a takeover of it. While it waits for another holder, it notifies the
  /// recipe's `WaitObserver`. Once a caller waits, `awaited` shows that to the holder, which may be waiting for a
  /// worker with background priority.
  Claims::AcquireResult acquire(Claims& claims, const RequestKey& request, std::chrono::milliseconds wait,
                                const Recipe& recipe, WorkerSlots::SlotRequest& awaited);
  Claims::AcquireResult wait_visibly(Claims& claims, const RequestKey& request, std::chrono::milliseconds wait,
                                     const Recipe& recipe, WorkerSlots::SlotRequest& awaited);
  void emit_wait(const Recipe& recipe, std::chrono::nanoseconds start) const;
  Result<ResolveResult> compile(const Recipe& recipe, const RequestKey& request, Compiler& compiler);
  /// Returns true if a store accepted it.
  bool publish(const Recipe& recipe, const ResolveResult& answer, const std::string& not_cacheable);
  static Event event(Event::Kind kind, const Recipe& recipe);

  Params params_;
  std::unique_ptr<DependencyCheckCache> dependency_checks_;
};

}  // namespace kiln
