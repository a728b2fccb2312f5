// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kiln/result.hpp>

#include "backends/backend_factory.hpp"
#include "backends/compiler.hpp"
#include "backends/cuda/bundled_headers.hpp"
#include "base/files/file_digest_cache.hpp"
#include "bundle/bundle_set.hpp"
#include "bundle/profile.hpp"
#include "cache/build_history.hpp"
#include "cache/disk_store.hpp"
#include "cache/local_claims.hpp"
#include "cache/tiered_store.hpp"
#include "engine/resolver.hpp"
#include "events/event_emitter.hpp"
#include "session/config/config.hpp"
#include "session/fleet_services.hpp"
#include "session/pch_place.hpp"
#include "trust/namespace_scope.hpp"
#include "trust/policy.hpp"
#include "worker/library_check.hpp"
#include "worker/pch_manager.hpp"
#include "worker/worker_pool.hpp"

namespace kiln {

/// Returns the directory of the results of checks of compiler libraries; empty if they are not stored.
std::string library_check_directory(const Config& config, const std::string& cache_root);
/// Returns the directory of the headers that NVRTC bundles; empty if they are not installed.
std::string bundled_headers_directory(const Config& config, const std::string& cache_root);

/// Returns the options for opening a cache directory with this configuration.
DiskStore::Options disk_store_options(const Config& config, std::string root, bool read_only);

/// The components of kiln, assembled from a configuration, for sessions and the command line. A component that is not
/// available is omitted and reported by an event. Nothing is opened or created before it is needed. Thread-safe.
class Components final : public UnitServices {
 public:
  /// `loader` loads results on devices; null means that they are not loaded.
  Components(Config config, EventEmitter emitter, const TrustOptions& trust = {}, ResultLoader* loader = nullptr);
  ~Components();
  Components(const Components&) = delete;
  Components& operator=(const Components&) = delete;

  const Config& config() const { return config_; }
  /// Returns the disk stores of the cache path, the writable one first. Empty if caching is off or no store is usable.
  const std::vector<std::shared_ptr<DiskStore>>& disks() const { return disks_; }
  /// Returns the store for entries fetched from the remote store, or null if there is none.
  DiskStore* fetched_store() const { return tiers_.fetched.get(); }
  const Resolver::Params& params() const { return params_; }
  /// Returns the resolver over these components.
  Resolver& resolver() { return *resolver_; }
  /// Returns null if requests are not recorded.
  ProfileRecorder* recorder() { return recorder_.get(); }

  Result<Compiler*> compiler(const Unit& unit, const Target& target) override;
  Result<Recipe> recipe(const Unit& unit, const Target& target, const RequestContext& context) override;
  std::optional<Recipe> undigested_recipe(const Unit& unit, const Target& target) override;
  Store* store_for(const Unit& unit) override;
  void interrupt() override;
  /// Waits until everything compiled so far is uploaded, at most `timeout`. Returns false if something is left.
  bool drain(std::chrono::nanoseconds timeout);
  /// Uploads what is still queued, within its time limit. Nothing is compiled any more.
  void finish();

 private:
  /// The store of fetched entries, and all tiers that the namespaces of a scope can use, as one store.
  struct Tiers {
    std::shared_ptr<DiskStore> fetched;
    std::unique_ptr<TieredStore> store;  ///< null if there is no tier
  };
  void open_stores();
  Tiers open_tiers(const NamespaceScope& scope, std::shared_ptr<Store> bundles, std::shared_ptr<Store> remote);
  void emit_bad_namespaces() const;
  std::shared_ptr<DiskStore> open_disk(const std::string& root, bool read_only);
  std::unique_ptr<Compiler> wrap_in_workers(std::unique_ptr<Compiler> inner, bool closed_in_process);
  std::unique_ptr<Compiler> make_by(const BackendFactory& backend, const std::string& device);
  std::unique_ptr<Compiler> make_linker() KILN_REQUIRES(mutex_);
  /// Returns null for a kind without a compiler. `which` distinguishes the compilers of one kind.
  Compiler* compiler_of(const std::string& kind, const std::string& which) KILN_REQUIRES(mutex_);

  Config config_;
  EventEmitter emitter_;
  const NamespaceScope scope_;  // scope of the session
  TrustPolicy policy_;
  std::unique_ptr<FileDigestCache> digests_;
  std::shared_ptr<BundleSet> bundles_;  // null if caching is off
  std::unique_ptr<ProfileRecorder> recorder_;
  std::unique_ptr<FleetServices> fleet_;  // null if no remote store is configured
  std::vector<std::shared_ptr<DiskStore>> disks_;
  Tiers tiers_;  // for units without `served_by`
  std::unique_ptr<Claims> claims_;
  const WorkerSlots slots_;
  Resolver::Params params_;
  std::unique_ptr<Resolver> resolver_;
  std::unique_ptr<PchManager> headers_;
  std::unique_ptr<LibraryCheck> checks_;
  std::unique_ptr<BundledHeaders> bundled_;
  std::unique_ptr<WorkerPool> workers_;  // null if everything is compiled in this process
  Mutex views_mutex_;
  std::map<std::vector<std::string>, Tiers> views_ KILN_GUARDED_BY(views_mutex_);  // by the units' `served_by`
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Compiler>> compilers_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
