// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/output/json_common.hpp"
#include "apps/kiln/remote/remote.hpp"

namespace kiln::cli {

static Json to_json(const RemoteGroup& group) {
  return {{"namespace", group.name_space}, {"epoch", group.epoch}, {"live", group.live},
          {"entries", group.entries},      {"bytes", group.bytes}, {"rejected", group.rejected}};
}

static Json to_json(const RemoteInventory::Entry& entry) {
  return {{"key", entry.key.hex()}, {"name", entry.name.hex()},      {"content", entry.content.hex()},
          {"bytes", entry.bytes},   {"namespace", entry.name_space}, {"epoch", entry.epoch},
          {"live", entry.live},     {"rejection", entry.rejection},  {"modified", seconds(entry.modified)}};
}

std::string remote_stats_json(const RemoteStats& stats) {
  Json out{{"remote", stats.remote}, {"ms", rounded(stats.ms)}, {"listed", stats.inventory.has_value()}};
  if (!stats.inventory) {
    out["list_error"] = stats.list_error;
    return text_of(out);
  }
  const RemoteInventory& inventory = *stats.inventory;
  out["groups"] = json_array(groups_of(inventory));
  out["entries"] = inventory.entries.size();
  out["hints"] = inventory.hints;
  out["hint_bytes"] = inventory.hint_bytes;
  out["unused"] = inventory.unused;
  out["unused_bytes"] = inventory.unused_bytes;
  return text_of(out);
}

std::string remote_verify_json(const std::string& remote, const RemoteInventory& inventory) {
  Json out{{"remote", remote}, {"entries", Json::array()}};
  for (const RemoteInventory::Entry& entry : inventory.entries) out["entries"].push_back(to_json(entry));
  return text_of(out);
}

std::string remote_upkeep_json(const RemoteGcReport& upkeep) {
  Json out{{"remote", upkeep.remote},
           {"dry_run", upkeep.dry_run},
           {"removed_entries", upkeep.cleaned.entries},
           {"removed_contents", upkeep.cleaned.contents},
           {"removed_bytes", upkeep.cleaned.bytes}};
  if (!upkeep.policy_line.empty()) out["minimum_epoch"] = upkeep.policy_line;
  return text_of(out);
}

std::string removed_entry_json(const RemovedEntry& removed_entry) {
  return text_of(
      {{"remote", removed_entry.remote}, {"key", removed_entry.key.hex()}, {"fetched", removed_entry.directories}});
}

}  // namespace kiln::cli
