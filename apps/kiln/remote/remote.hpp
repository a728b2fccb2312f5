// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "apps/kiln/arguments.hpp"
#include "apps/kiln/output/console.hpp"
#include "remote/inventory.hpp"
#include "remote/object_store.hpp"
#include "session/config/config.hpp"
#include "trust/policy.hpp"

namespace kiln::cli {

/// The remote store of a command, and the trust policy that applies to its entries.
struct OpenRemote {
  Config config;
  std::shared_ptr<ObjectStore> object_store;
  TrustPolicy policy;
};
/// Opens the store of --remote or of the settings. Sends no request yet.
Result<OpenRemote> open_remote(const Arguments& arguments, Console& console);

/// Entries of one namespace and epoch.
struct RemoteGroup {
  std::string name_space;  ///< empty if the entry could not be read
  std::uint64_t epoch = 0;
  bool live = false;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t rejected = 0;  ///< entries that the policy of this host rejects
};
/// Groups the entries, sorted by namespace and epoch.
std::vector<RemoteGroup> groups_of(const RemoteInventory& inventory);

/// `7`, or `20772 (2026-11-15)` for a live namespace, whose epochs are days.
std::string epoch_text(std::uint64_t epoch, bool live);

struct RemoteStats {
  std::string remote;
  double ms = 0;  ///< response time in milliseconds
  std::optional<RemoteInventory> inventory;
  std::string list_error;  ///< reason why there is no inventory
};

/// The result of a garbage collection or its dry run, and the line to add to the policies.
struct RemoteGcReport {
  std::string remote;
  RemoteGcResult cleaned;
  bool dry_run = false;
  std::string policy_line;  ///< only for rm --before-epoch
};

struct RemovedEntry {
  std::string remote;
  ArtifactKey key;
  std::vector<std::string> directories;  ///< local directories from which the entry was removed
};

// The JSON of `kiln remote`. The rules of render_json.hpp apply.
std::string remote_stats_json(const RemoteStats& stats);
std::string remote_verify_json(const std::string& remote, const RemoteInventory& inventory);
std::string remote_upkeep_json(const RemoteGcReport& upkeep);
std::string removed_entry_json(const RemovedEntry& removed_entry);

}  // namespace kiln::cli
