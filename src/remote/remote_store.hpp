// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "cache/store.hpp"
#include "events/event_emitter.hpp"
#include "remote/entry_verifier.hpp"
#include "remote/object_store.hpp"
#include "trust/namespace_scope.hpp"
#include "trust/policy.hpp"
#include "trust/signer.hpp"

namespace kiln {

/// A cache that hosts share, on an object store: `ac/<digest of namespace and key>` holds an ActionResult with a signed
/// statement, `cas/<digest>` the packed entry, `ac/<digest of the request>` the dependency sets.
/// docs/internals/formats/remote.md has the grammar. Thread-safe.
///
/// A key is looked up in the namespaces of `remote_namespaces`, releases first. Live namespaces are queried only if no
/// release namespace has an object for the key, not if an object of a release is rejected.
///
/// Only entries that the policy accepts are used. Signer, key and content digest are verified before the content is
/// fetched, and the content's digest before it is decompressed. Dependency sets are hints and need no signature, but
/// can only name files below an include root or the working directory; others are neither sent nor accepted. A host
/// without a signer only reads.
///
/// A rejected entry causes one event (RemoteRejected) with the reason and Code::Corrupt, which tells a GuardedStore
/// that the server returned bad data; GuardedStore treats it as a miss. Missing content causes an event and is a miss
/// here, because servers may evict it. Every other error comes from the object store: it could not be reached.
class RemoteStore final : public Store {
 public:
  struct Params {
    std::shared_ptr<ObjectStore> object_store;
    std::shared_ptr<const TrustPolicy> policy;
    std::shared_ptr<const Signer> signer;  ///< null for a host that only reads
    EventEmitter emitter;
    const Clock* clock = &system_clock();
    /// Namespaces to query in addition to the signer's own and those that the policy names without a wildcard.
    std::vector<std::string> namespaces = {};
    NamespaceScope scope = {};  ///< the namespaces that can serve readers of this store
    bool publish_logs = false;  ///< publish entries with the compiler log, which quotes sources
    /// Time limit of one lookup or one put with all its objects, unless a `ServerTimeBudget` is shorter.
    std::chrono::nanoseconds read_limit = std::chrono::seconds(10);
    std::chrono::nanoseconds write_limit = std::chrono::seconds(30);
  };
  explicit RemoteStore(Params params);

  Result<std::optional<Hit>> get(const ArtifactKey& key, const RequestContext& context) override;
  /// Uploads the content, then the statement. A live signer keeps an entry that a CI signer has signed, because fewer
  /// hosts would trust its own.
  Status put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& context) override;
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit,
                                                     const RequestContext& context) override;
  Status add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                            const RequestContext& context) override;
  bool is_writable() override { return params_.signer != nullptr; }
  std::string describe() const override;

  /// Removes an entry from every namespace that this store queries. Later lookups miss.
  Status remove(const ArtifactKey& key);

  /// Maximum size of an object with dependency sets.
  static constexpr std::uint64_t kMaxHintBytes = std::uint64_t{4} << 20;
  /// Maximum size of an object with an entry's statement.
  static constexpr std::uint64_t kMaxActionBytes = std::uint64_t{64} << 10;
  /// Maximum size of content that such an object contains too. The rest is less than 2 KiB.
  static constexpr std::uint64_t kMaxInlinedBytes = std::uint64_t{48} << 10;

 private:
  struct VerifiedEntry;
  /// Looks up a key in the release namespaces and, if they have nothing, in the live namespaces.
  Result<VerifiedEntry> find(const ArtifactKey& key, bool live_too, const Deadline& deadline);
  Result<VerifiedEntry> find_in(const std::string& name_space, const ArtifactKey& key, const Deadline& deadline);
  /// Emits an event for the rejection and returns the error for the caller.
  Error reject(const std::string& key, const Rejection& rejection) const;

  const Params params_;
  const std::vector<std::string> namespaces_;  // the namespaces to query, in this order
};

/// Returns the namespaces that a reader queries, at most kMaxRemoteNamespaces: those that `scope` names, then `more`,
/// then those that the policy names, with live namespaces last. Each occurs once, and only if the policy can trust it
/// and the scope allows it. If `left_out` is not null, it receives the namespaces beyond the maximum.
std::vector<std::string> remote_namespaces(const TrustPolicy& policy, const std::vector<std::string>& more,
                                           const NamespaceScope& scope, std::vector<std::string>* left_out = nullptr);
/// Each namespace costs one request, and all of them share the time of one lookup.
inline constexpr std::size_t kMaxRemoteNamespaces = 4;

}  // namespace kiln
