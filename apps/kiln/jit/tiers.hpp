// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <kiln/session.hpp>

#include "apps/kiln/jit/entry_list.hpp"
#include "apps/kiln/jit/environment.hpp"

namespace kiln::jit {

/// A list and where it comes from.
struct FoundList {
  EntryList list;
  std::string source;  ///< for messages: "bundle", "cache", "remote acme/vision"
};

/// Lists and packed entries of other systems in kiln's tiers: bundles, this user's cache, the remote store. The tiers
/// verify signatures and checksums. Not thread-safe.
class JitTiers {
 public:
  /// `profile` names the set of entries. The session must outlive this object.
  JitTiers(Session& session, std::string profile) : session_(session), profile_(std::move(profile)) {}

  /// Returns the usable lists of a system: of each bundle, of this user's cache, of each trusted namespace of the
  /// remote store. For host code, lists of live namespaces are left out.
  std::vector<FoundList> lists(const DetectedSystem& system, std::chrono::nanoseconds remaining) const;
  /// Returns a packed entry whose SHA-256 is `digest`, or nothing if no tier has it.
  std::optional<Bytes> entry(const std::string& system, const Digest& digest, std::chrono::nanoseconds remaining) const;

  /// Stores a packed entry in this user's cache and the remote store.
  Status put_entry(const std::string& system, const Digest& digest, std::string bytes, const std::string& name) const;
  /// Adds lines to the list in this user's cache and to the list of this host's namespace in the remote store.
  Status put_lines(const DetectedSystem& system, const std::vector<EntryList::Line>& lines) const;
  const std::string& profile() const { return profile_; }

 private:
  Session& session_;
  std::string profile_;
};

}  // namespace kiln::jit
