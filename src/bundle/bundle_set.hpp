// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <kiln/unit.hpp>

#include "base/mutex.hpp"
#include "bundle/bundle.hpp"
#include "bundle/epoch_memory.hpp"
#include "cache/store.hpp"
#include "core/recipe.hpp"
#include "events/event_emitter.hpp"
#include "trust/namespace_scope.hpp"
#include "trust/policy.hpp"

namespace kiln {

/// The bundles of a process as one store: those that the configuration names, then those that are linked into the
/// program and its libraries or installed with them (`use_bundle`). Each is opened when it is first needed. A bundle
/// that cannot be used, or whose namespace must not serve the session, is reported by one event and skipped.
/// Thread-safe.
class BundleSet final : public Store {
 public:
  struct Options {
    NamespaceScope scope = {};  ///< scope of the session; a unit can narrow it
    /// null if bundles with an older epoch than one already seen are accepted
    std::shared_ptr<EpochMemory> epochs = nullptr;
  };
  BundleSet(std::vector<std::string> paths, TrustPolicy policy, EventEmitter emitter, Options options);
  BundleSet(std::vector<std::string> paths, TrustPolicy policy, EventEmitter emitter);

  /// Returns true if there is a bundle at this time. Opens linked-in bundles, but no file.
  bool has_any();

  Result<std::optional<Hit>> get(const ArtifactKey& key, const RequestContext& /*context*/) override {
    return get_within(options_.scope, key);
  }
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit,
                                                     const RequestContext& /*context*/) override {
    return dependency_sets_within(options_.scope, request, limit);
  }
  /// Same, from the bundles of these namespaces only.
  Result<std::optional<Hit>> get_within(const NamespaceScope& scope, const ArtifactKey& key);
  Result<std::vector<DependencySet>> dependency_sets_within(const NamespaceScope& scope, const RequestKey& request,
                                                            std::size_t limit);
  /// Returns the artifact of each bundle that has the key, in the order of the bundles.
  std::vector<Hit> get_all(const ArtifactKey& key);
  Status put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& context) override;
  Status add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                            const RequestContext& context) override;
  bool is_writable() override { return false; }
  std::string describe() const override;

  struct BundleHit {
    Bundle::Match match;
    std::string bundle;  ///< display name
  };
  /// Returns the code of the first bundle that has some for the target and can serve the unit. If bundles contain the
  /// unit but no compatible code, an event reports what they have.
  std::optional<BundleHit> find(const Unit& unit, const Target& target, std::uint64_t flow,
                                const Bytes* rejected = nullptr);
  /// Returns why no bundle serves the unit for the target, and the next step, as text: the targets for which bundles
  /// have it or that they have another unit of its name, and the bundles that are not used. Empty if there is nothing.
  std::string explain_miss(const Unit& unit, const Target& target);
  /// Emits an event for each bundle that has the recipe's unit by another compiler. The event names both compilers.
  void emit_other_compilers(const Recipe& recipe, const RequestContext& context);

 private:
  using List = std::vector<std::shared_ptr<Bundle>>;
  /// Returns the open bundles. Searches again when a library was loaded or a bundle was added.
  std::shared_ptr<const List> all();
  void open_files(List& list) KILN_REQUIRES(mutex_);
  void open_embedded(List& list) KILN_REQUIRES(mutex_);
  /// Opens those of these program bundles that were added since the last search.
  void open_program_bundles(const std::vector<std::string>& paths, List& list) KILN_REQUIRES(mutex_);
  /// Adds a bundle that is as trusted as the program. Returns false if it cannot be used, which is reported once.
  bool add_trusted(Result<std::unique_ptr<Bundle>> bundle, List& list) KILN_REQUIRES(mutex_);
  /// Returns an error with the reason if the namespace of a bundle must not serve the session.
  Status check_scope(const Bundle& bundle) const;
  NamespaceScope scope_of(const Unit& unit) const { return options_.scope.narrowed(unit.served_by()); }
  /// Returns which bundle has another unit with the name of this one, and the next step. Empty if none has.
  std::string explain_other_unit(const Unit& unit, const NamespaceScope& scope);
  /// Appends for which targets the bundle has the unit, as text. Returns whether `target` is one of them.
  bool append_targets(Bundle& bundle, const Unit& unit, const Target& target, std::string& have);
  /// Reports a bundle that is not used.
  void reject(std::string reason) KILN_REQUIRES(mutex_);
  bool is_first_report(const std::string& what);
  void emit_corruption(const Bundle& bundle, const Error& error);

  const std::vector<std::string> paths_;
  const TrustPolicy policy_;
  const EventEmitter emitter_;
  const Options options_;
  mutable Mutex mutex_;
  std::shared_ptr<const List> list_ KILN_GUARDED_BY(mutex_);          // null before the first search
  std::uint64_t objects_ KILN_GUARDED_BY(mutex_) = 0;                 // number of loaded objects at the last search
  std::size_t program_bundles_ KILN_GUARDED_BY(mutex_) = 0;           // number of program bundles at the last search
  std::vector<const void*> embedded_ KILN_GUARDED_BY(mutex_);         // addresses of the linked-in bundles
  std::vector<std::string> rejected_ KILN_GUARDED_BY(mutex_);         // reasons
  std::unordered_set<std::string> reported_ KILN_GUARDED_BY(mutex_);  // to report each problem once
};

/// The bundles of a process whose namespaces can serve one unit. Thread-safe.
class ScopedBundles final : public Store {
 public:
  ScopedBundles(std::shared_ptr<BundleSet> bundles, NamespaceScope scope)
      : bundles_(std::move(bundles)), scope_(std::move(scope)) {}

  Result<std::optional<Hit>> get(const ArtifactKey& key, const RequestContext& /*context*/) override {
    return bundles_->get_within(scope_, key);
  }
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit,
                                                     const RequestContext& /*context*/) override {
    return bundles_->dependency_sets_within(scope_, request, limit);
  }
  Status put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& context) override {
    return bundles_->put(key, artifact, context);
  }
  Status add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                            const RequestContext& context) override {
    return bundles_->add_dependency_set(request, dependency_set, context);
  }
  bool is_writable() override { return false; }
  std::string describe() const override { return bundles_->describe(); }

 private:
  const std::shared_ptr<BundleSet> bundles_;
  const NamespaceScope scope_;
};

}  // namespace kiln
