// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/session.hpp>

#include "apps/kiln/jit/entry_list.hpp"
#include "apps/kiln/jit/environment.hpp"
#include "base/clock.hpp"

namespace kiln {
class Components;
class ObjectStore;
class RemoteStore;
class Signer;
class TrustPolicy;
}  // namespace kiln

namespace kiln::jit {

/// A list and where it comes from.
struct FoundList {
  EntryList list;
  std::string source;  ///< for messages: "bundle", "cache", "remote acme/vision"
};

/// The `source` of the list in this user's cache.
inline constexpr std::string_view kOwnSource = "cache";

/// Lists and packed entries of other systems in kiln's tiers: bundles, this user's cache, the remote store. The tiers
/// verify signatures and checksums. After a server did not respond, this object does not use it any more: make one for
/// each fill and publication. Not thread-safe.
class JitTiers {
 public:
  /// `profile` names the set of entries. The session must outlive this object.
  JitTiers(Session& session, std::string profile);
  ~JitTiers();
  JitTiers(const JitTiers&) = delete;
  JitTiers& operator=(const JitTiers&) = delete;

  /// Returns the usable lists of a system: of each bundle, of this user's cache, of each trusted namespace of the
  /// remote store. For host code, lists of live namespaces are left out. Adds a message for each unusable list.
  std::vector<FoundList> lists(const DetectedSystem& system, const Deadline& deadline,
                               std::vector<std::string>& problems) const;
  /// Returns a packed entry whose SHA-256 is `digest`, or nothing if no tier has it.
  std::optional<Bytes> entry(const std::string& system, const Digest& digest, const Deadline& deadline) const;

  /// Stores a packed entry in this user's cache.
  Status put_entry(const std::string& system, const Digest& digest, std::string bytes, const std::string& name) const;
  /// Adds lines to the list in this user's cache. If this host publishes, also sends the entries of that list that the
  /// list of its namespace in the remote store lacks, and adds their lines there. Returns an error if that fails.
  Status put_lines(const DetectedSystem& system, const std::vector<EntryList::Line>& lines,
                   const Deadline& deadline) const;
  /// Returns whether this user's cache has a packed entry.
  bool has_own_entry(const std::string& system, const Digest& digest) const;
  /// Returns the names of the lists of a system in this user's cache for other environments or profiles.
  std::vector<std::string> other_lists(const DetectedSystem& system) const;
  const std::string& profile() const { return profile_; }

 private:
  std::chrono::nanoseconds server_time(const Deadline& deadline) const;
  std::unique_ptr<RemoteStore> remote_of(const std::string& name_space) const;
  std::optional<EntryList> decoded(const DetectedSystem& system, const Bytes& bytes, std::string_view publisher,
                                   std::vector<std::string>& problems) const;
  ArtifactKey key_of(const DetectedSystem& system, std::string_view publisher) const;
  std::string list_name(const DetectedSystem& system) const;
  Status check_size(const EntryList& list) const;
  Result<EntryList> put_own_list(const DetectedSystem& system, const std::vector<EntryList::Line>& lines,
                                 const Deadline& deadline) const;
  Result<EntryList> remote_list(const DetectedSystem& system, RemoteStore& remote, const Deadline& deadline) const;
  bool has_remote_entry(const std::string& system, const Digest& digest, const Deadline& deadline) const;
  Status send_entry(const std::string& system, const EntryList::Line& line, RemoteStore& remote,
                    const Deadline& deadline) const;
  Status put_remote_list(const DetectedSystem& system, const std::vector<EntryList::Line>& lines, RemoteStore& remote,
                         const Deadline& deadline) const;
  Status send(const DetectedSystem& system, const EntryList& own, const Deadline& deadline) const;

  std::string profile_;
  Components& components_;
  // Null if no remote store is configured or it cannot be used.
  std::shared_ptr<const TrustPolicy> policy_;
  std::shared_ptr<ObjectStore> object_store_;
  std::shared_ptr<const Signer> signer_;  // null if this host does not publish
  mutable bool server_failed_ = false;
};

}  // namespace kiln::jit
