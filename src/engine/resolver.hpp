// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <kiln/artifact.hpp>
#include <kiln/result.hpp>

#include "backends/compiler.hpp"
#include "base/clock.hpp"
#include "base/files/file_digest_cache.hpp"
#include "bundle/bundle_set.hpp"
#include "cache/activity_log.hpp"
#include "cache/build_history.hpp"
#include "cache/claims.hpp"
#include "cache/store.hpp"
#include "core/dependency_check_cache.hpp"
#include "core/fleet_place.hpp"
#include "core/recipe.hpp"
#include "core/request_context.hpp"
#include "events/event_emitter.hpp"
#include "worker/worker_slots.hpp"

namespace kiln {

/// A compile request: a unit for a target. Cheap to create and to copy, because nothing is hashed.
struct CompileRequest {
  Unit unit;
  Target target;
  /// True if the result is loaded on a device of this process; a result without bytes is then sufficient. If two
  /// requests share one task, the first one decides.
  bool load_on_device = false;
};

/// A key that another system computed for code that it compiles itself. A value type.
struct ExternalKey {
  ExternalKey(std::string its_system, std::string_view its_text)
      : system(std::move(its_system)), text(its_text), artifact(ArtifactKey::external(system, text)) {}
  std::string system;
  std::string_view text;  ///< the system's own key; the caller keeps it
  ArtifactKey artifact;
};

/// The result of resolving a request.
struct ResolveResult {
  Artifact artifact;  ///< including its dependency set
  RequestKey request;
  ArtifactKey key;  ///< for an artifact that cannot be cached: the key that it would have had
  Origin origin = Origin::Compiled;
  std::string uncacheable_reason = {};  ///< the reason why it is not cached; empty if it is
  double ms = 0;                        ///< time from the request to the result
  std::uint64_t flow = 0;               ///< id of the task
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

/// Returns the parts of a result that are public.
inline ResolvedArtifact resolved_artifact(ResolveResult result) {
  return {std::move(result.artifact),          result.request, result.key, result.origin, result.ms,
          std::move(result.uncacheable_reason)};
}

/// The compilers of units and the stores that can serve them. Implemented by `Components`. Thread-safe.
class UnitServices {
 public:
  /// Returns the compiler of a unit for a target. The object owns it.
  virtual Result<Compiler*> compiler(const Unit& unit, const Target& target) = 0;
  /// Returns the recipe of a unit in this process at this time: its compiler, environment and working directory.
  virtual Result<Recipe> recipe(const Unit& unit, const Target& target, const RequestContext& context) = 0;
  /// Returns the recipe without the digest of its compiler if `recipe` has to read large files first and the compiler
  /// can start early (`Compiler::start_early`); otherwise nothing.
  virtual std::optional<Recipe> undigested_recipe(const Unit& unit, const Target& target) = 0;
  /// Returns the tiers whose namespaces can serve the unit, as one store; null if there is none.
  virtual Store* store_for(const Unit& unit) = 0;
  /// Terminates the compiles that run in other processes, because the program is ending.
  virtual void interrupt() = 0;

 protected:
  ~UnitServices() = default;
};

/// Loads results on the devices of this process. Thread-safe.
class ResultLoader {
 public:
  /// Loads the result if the request is for a device. Only a rejection by the driver is an error.
  virtual Status load(const CompileRequest& request, const ResolveResult& result) = 0;
  /// Returns true if the driver has loaded the code and its bytes can be read again, so that they need not stay in
  /// memory.
  virtual bool can_drop_bytes(const CompileRequest& request, const ResolveResult& result) = 0;

 protected:
  ~ResultLoader() = default;
};

/// The one path from a request to an artifact, for units and for keys of other systems: bundles, stores, claim on this
/// host, stores, claim in the fleet, stores, compile, publish. The stores are checked after every claim attempt,
/// regardless of its outcome, before anything is compiled. Exactly one of the waiting processes takes over from a
/// holder that makes no progress. Failing stores or claims never fail the result: they cost a compile, and an event
/// reports the reason. Thread-safe. The virtual functions are those that the engine calls; its tests replace them.
class Resolver {
 public:
  /// The collaborators. None is owned; members that can be null say so.
  struct Params {
    UnitServices* units = nullptr;   ///< null if only `get` and `find` of recipes are used
    ResultLoader* loader = nullptr;  ///< null means that results are not loaded
    BundleSet* bundles = nullptr;    ///< queried by unit before the stores; may be null
    /// True if bundles are queried by key like any store, because compiler and target must be the same.
    bool bundles_exact = false;
    Store* store = nullptr;    ///< for units without `served_by`; null means that nothing is looked up or stored
    Claims* claims = nullptr;  ///< among the processes of this host; null means that every process compiles for itself
    Claims* fleet = nullptr;   ///< among hosts, used by the process that holds the claim of its host; null means that
                               ///< hosts do not wait
    const WorkerSlots* slots = nullptr;  ///< shows holders that a caller waits in `claims`; may be null
    BuildHistory* history = nullptr;     ///< null means that `explain` has no earlier builds
    ActivityLog* activity = nullptr;     ///< null means that hits and misses are not counted
    FileDigestCache* digests = nullptr;
    const Clock* clock = &system_clock();
    EventEmitter emitter;
    bool compile_allowed = true;   ///< false means that a miss is `Code::Denied`
    bool has_remote_tier = false;  ///< true if a tier of the store is a server
    std::chrono::nanoseconds server_time_budget =
        std::chrono::milliseconds(100);  ///< time budget for servers of a request that a caller waits for
    std::chrono::nanoseconds background_server_time_budget =
        std::chrono::milliseconds(100);                                      ///< the same while no caller waits
    FleetPlace fleet_place = {};                                             ///< where background tasks start
    std::chrono::milliseconds lease_ttl{0};                                  ///< time after which a fleet claim expires
    std::chrono::milliseconds unknown_cost_wait = std::chrono::seconds(30);  ///< wait for a unit without recorded cost

    /// Returns the tiers that can serve a unit, as one store; null if there is none.
    Store* store_for(const Unit& unit) const { return units != nullptr ? units->store_for(unit) : store; }
  };
  explicit Resolver(Params params)
      : params_(std::move(params)), dependency_checks_(std::make_unique<DependencyCheckCache>(*params_.clock)) {}
  virtual ~Resolver() = default;

  /// Resolves a request: `find_prebuilt`, `recipe` and `resolve`, for callers without an engine.
  Result<ResolveResult> get(const CompileRequest& request, const RequestContext& context);

  /// Returns a result that needs no recipe, because it does not depend on a compiler of this machine: the result of a
  /// bundle that the driver accepts. It is nothing if bundles must match exactly.
  virtual Result<std::optional<ResolveResult>> find_prebuilt(const CompileRequest& request,
                                                             const RequestContext& context);
  /// Starts the compile of a request if its recipe takes long because the compiler was not digested on this host
  /// before. `resolve` uses its result on a miss; it is dropped with the object. Returns null otherwise, and in a
  /// fleet.
  virtual std::unique_ptr<EarlyCompile> start_early(const CompileRequest& request, const RequestContext& context);
  /// Returns the current recipe of a request.
  virtual Result<Recipe> recipe(const CompileRequest& request, const RequestContext& context);
  /// Returns a result from the stores or from a compile. If the driver rejects one, the next tier or the compiler
  /// supplies another.
  virtual Result<ResolveResult> resolve(const CompileRequest& request, const Recipe& recipe,
                                        const RequestContext& context);
  /// Returns a result that needs no compile, no server and no digest of a compiler.
  virtual Result<std::optional<ResolveResult>> lookup(const CompileRequest& request, const RequestContext& context);
  /// Returns true if the inputs of a failed compile have changed.
  virtual bool inputs_changed(const Recipe& recipe);
  /// Returns true if resolving the request now would give the same result.
  virtual bool is_current(const CompileRequest& request, const ResolveResult& result, const RequestContext& context);
  const FleetPlace& fleet_place() const { return params_.fleet_place; }
  /// Makes running `resolve` calls return soon, if that is possible.
  virtual void interrupt();

  /// Looks up the recipe in the stores without compiling. `rejected`, which a driver rejected, counts as a miss.
  Result<std::optional<ResolveResult>> find(const Recipe& recipe, const RequestContext& context,
                                            const Bytes* rejected = nullptr);
  /// Looks up the recipe in the stores and compiles it on a miss.
  Result<ResolveResult> get(const Recipe& recipe, Compiler& compiler, const RequestContext& context,
                            const Bytes* rejected = nullptr);

  /// A result, or the claims with which the caller compiles. Neither means: compile without a claim. The fleet's claim
  /// is released before the host's, as it was acquired after it.
  struct Turn {
    std::optional<ResolveResult> found;
    std::unique_ptr<Claim> of_host;
    std::unique_ptr<Claim> of_fleet;
    bool servers_refused = false;  // no server was asked, because they are overloaded
  };
  /// The same for a key of another system, whose caller compiles: looks up, claims and publishes. `context.deadline`
  /// limits the wait for another holder; a holder that is slow is not replaced, because the cost is not known.
  std::optional<ResolveResult> find(const ExternalKey& key, const RequestContext& context);
  Turn find_or_claim(const ExternalKey& key, const RequestContext& context);
  Status publish(const ExternalKey& key, const Artifact& artifact, const RequestContext& context);

 private:
  /// What one call looks for: a recipe, or a key of another system.
  struct Subject {
    const Recipe* recipe = nullptr;         // null for a key of another system
    const ExternalKey* external = nullptr;  // null for a recipe
    RequestKey request;                     // key of the claims
    Store* store = nullptr;                 // may be null
    const Bytes* rejected = nullptr;
  };
  Subject subject_of(const Recipe& recipe, const Bytes* rejected);
  Subject subject_of(const ExternalKey& key) const;

  std::optional<ResolveResult> find(const Subject& subject, const RequestContext& context);
  /// Same, in the tiers of this host, without querying a server.
  std::optional<ResolveResult> find_local(const Subject& subject, const RequestContext& context);
  std::optional<ResolveResult> find_in_store(const Subject& subject, const RequestContext& context);
  std::optional<ResolveResult> find_by_key(const Subject& subject, const ArtifactKey& key,
                                           const RequestContext& context);
  std::optional<ResolveResult> find_in_bundles(const CompileRequest& request, const RequestContext& context,
                                               const Bytes* rejected);
  /// The claims, the time to wait for another holder, and how holders without progress are replaced.
  struct Participant {
    Claims& claims;
    std::chrono::milliseconds wait;
    int max_takeovers;
    bool replaces_slow = true;  // false: only stopped holders
  };
  ServerTimeBudget server_time_budget(const Subject& subject, const RequestContext& context) const;
  Turn find_or_claim(const Subject& subject, const RequestContext& context);
  /// Returns the result that the holder published, or sets `claim`. Does neither if the claim was not acquired in time.
  /// The store was checked after the last wait.
  std::optional<ResolveResult> claim_or_find(const Participant& participant, const Subject& subject,
                                             const RequestContext& context, std::unique_ptr<Claim>& claim);
  std::chrono::milliseconds time_left(const Participant& participant, const RequestContext& context,
                                      std::chrono::nanoseconds start) const;
  std::chrono::milliseconds peer_wait_timeout(const Subject& subject) const;
  Result<ResolveResult> compile(const Recipe& recipe, Compiler& compiler, const Subject& subject,
                                const RequestContext& context);
  Status publish(const Subject& subject, const ArtifactKey& key, const Artifact& artifact,
                 const std::string& not_cacheable, const RequestContext& context);

  Error denied(const Recipe& recipe, const Store* store) const;
  Status load(const CompileRequest& request, const ResolveResult& result) const;
  /// Returns the result without its bytes if they are not needed any more.
  ResolveResult without_spare_bytes(const CompileRequest& request, ResolveResult result) const;
  Event event(Event::Kind kind, const Subject& subject, const RequestContext& context) const;
  void emit_hit(Event hit, const ResolveResult& result) const;
  void count_hit(const ResolveResult& result) const;
  void emit_miss(const Subject& subject, const RequestContext& context) const;

  const Params params_;
  std::unique_ptr<DependencyCheckCache> dependency_checks_;
};

/// Opens the resolver of an engine when a task first needs it: the configuration and the stores are not opened on the
/// thread that requests units. Thread-safe.
class ResolverSource {
 public:
  /// Returns the resolver for a lookup on a caller's thread.
  virtual Resolver& resolver() = 0;
  /// Returns the resolver for a task that starts on a thread of the engine.
  virtual Resolver& resolver_for_task() = 0;
  /// Returns the resolver if it is open, otherwise null.
  virtual Resolver* opened_resolver() noexcept = 0;

 protected:
  ~ResolverSource() = default;
};

}  // namespace kiln
