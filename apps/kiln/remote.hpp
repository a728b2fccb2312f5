#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "apps/kiln/arguments.hpp"
#include "apps/kiln/console.hpp"
#include "remote/depot.hpp"
#include "remote/inventory.hpp"
#include "session/config.hpp"
#include "trust/policy.hpp"

namespace kiln::cli {

/// The remote store that a command is about, and by which policy it is judged.
struct OpenRemote {
  Config config;
  std::shared_ptr<Depot> depot;
  TrustPolicy policy;
};
/// That of the command line, else the settings'. Nothing was asked of it yet.
Result<OpenRemote> open_remote(const Arguments& arguments, Console& console);

/// Entries of one namespace and epoch.
struct RemoteGroup {
  std::string name_space;  ///< empty: nothing could be read
  std::uint64_t epoch = 0;
  bool live = false;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t refused = 0;  ///< by this host's policy
};
/// In the order of namespaces and epochs.
std::vector<RemoteGroup> groups_of(const RemoteInventory& inventory);

/// `7`; of a live namespace, whose epochs are days, `20772 (2026-11-15)`.
std::string epoch_text(std::uint64_t epoch, bool live);

struct RemoteStats {
  std::string remote;
  double ms = 0;  ///< how long it took to answer
  std::optional<RemoteInventory> inventory;
  std::string cannot_list;  ///< why there is none
};

/// What a cleaning removed, or would have, and what to tell the readers.
struct RemoteUpkeep {
  std::string remote;
  RemoteCleaned cleaned;
  bool dry_run = false;
  std::string policy_line;  ///< of disown --epoch
};

struct Disowned {
  std::string remote;
  Key key;
  std::vector<std::string> folders;  ///< of this host, from which it was taken
};

// The JSON of `kiln remote`, under the rules of render_json.hpp.
std::string remote_stats_json(const RemoteStats& stats);
std::string remote_verify_json(const std::string& remote, const RemoteInventory& inventory);
std::string remote_upkeep_json(const RemoteUpkeep& upkeep);
std::string disowned_json(const Disowned& disowned);

}  // namespace kiln::cli
