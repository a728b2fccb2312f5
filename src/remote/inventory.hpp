// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/progress_callback.hpp"
#include "remote/object_store.hpp"
#include "trust/policy.hpp"

namespace kiln {

/// The contents of an object store that supports listing, for its operators. Objects are verified as a reader does.
struct RemoteInventory {
  struct Entry {
    Digest name;      ///< object name of the action
    ArtifactKey key;  ///< as stated by the action; zero if it states none
    Digest content;
    std::uint64_t bytes = 0;  ///< size of the statement and the content
    std::string name_space;   ///< empty if the statement is unreadable
    std::uint64_t epoch = 0;
    bool live = false;
    std::string rejection;                ///< reason why a reader with this policy rejects it; empty if accepted
    std::chrono::nanoseconds modified{};  ///< by the clock of the object store
  };
  std::vector<Entry> entries;
  std::uint64_t hints = 0;  ///< objects with dependency sets
  std::uint64_t hint_bytes = 0;
  std::uint64_t unused = 0;  ///< content objects that no entry refers to
  std::uint64_t unused_bytes = 0;
};

/// Reads the inventory. With `contents`, also fetches and verifies the content of each entry.
Result<RemoteInventory> read_inventory(ObjectStore& object_store, const TrustPolicy& policy,
                                       std::chrono::nanoseconds wall, bool contents,
                                       const ProgressCallback& advance = {});

struct RemoteGcOptions {
  std::uint64_t max_bytes = 0;  ///< maximum size of all entries; the oldest are removed first; 0 means unlimited
  std::optional<std::uint64_t> min_epoch;  ///< entries of `name_space` with a lower epoch are removed
  std::string name_space;                  ///< empty means all namespaces
  bool dry_run = false;                    ///< only count, remove nothing
};
struct RemoteGcResult {
  std::uint64_t entries = 0;
  std::uint64_t contents = 0;
  std::uint64_t bytes = 0;
};
/// Removes the selected entries and content that no entry refers to, whether the policy trusts the entry or not. A
/// concurrent reader gets a miss.
Result<RemoteGcResult> collect_remote_garbage(ObjectStore& object_store, const TrustPolicy& policy,
                                              std::chrono::nanoseconds wall, const RemoteGcOptions& cleaning,
                                              const ProgressCallback& advance = {});

}  // namespace kiln
