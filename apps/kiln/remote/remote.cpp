// SPDX-License-Identifier: Apache-2.0
// kiln remote stats | verify: commands that inspect the remote store. remote_gc.cpp has the commands that remove.
#include "apps/kiln/remote/remote.hpp"
#include "apps/kiln/output/progress.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "apps/kiln/bundle/bundle_files.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "session/config/settings.hpp"
#include "session/remote_factory.hpp"

namespace kiln::cli {
namespace {

constexpr std::chrono::seconds kProbe{10};

// Adds a next step to the error of a server that cannot list its objects.
std::string listing_advice(const Error& error) {
  return error.message +
         "; configure nginx to list objects (docs/how-to/http-store.md), bazel-remote cleans up by itself";
}

void print_stats(const RemoteStats& stats, Console& console) {
  console.print(console.bold(stats.remote) + " responds in " + time_text(stats.ms));
  if (!stats.inventory) {
    console.print("The contents cannot be listed: " + stats.list_error);
    return;
  }
  const RemoteInventory& inventory = *stats.inventory;
  std::vector<std::vector<std::string>> rows = {{"NAMESPACE", "EPOCH", "ENTRIES", "SIZE", "TRUSTED HERE"}};
  for (const RemoteGroup& group : groups_of(inventory)) {
    rows.push_back({group.name_space.empty() ? "(none)" : printable(group.name_space),
                    group.name_space.empty() ? "" : epoch_text(group.epoch, group.live), std::to_string(group.entries),
                    format_bytes(group.bytes), std::to_string(group.entries - group.rejected)});
  }
  console.print(rows.size() == 1 ? "The store has no entries." : table_text(rows));
  std::string rest =
      format_count(inventory.hints, "list", "lists") + " of dependency sets, " + format_bytes(inventory.hint_bytes);
  if (inventory.unused > 0) {
    rest += "; " + format_count(inventory.unused, "content", "contents") + " without an entry, " +
            format_bytes(inventory.unused_bytes) + ": 'kiln remote gc' removes those older than an hour";
  }
  console.print(rest);
}

void print_faults(const RemoteInventory& inventory, std::size_t faulty, Console& console) {
  std::vector<std::vector<std::string>> rows = {{"KEY", "NAMESPACE", "EPOCH", "REASON"}};
  for (const RemoteInventory::Entry& entry : inventory.entries) {
    if (entry.rejection.empty()) continue;
    // An entry without a readable key is identified by the name of its action.
    const Digest& digest = entry.key == ArtifactKey() ? entry.name : entry.key.digest;
    rows.push_back({digest.hex().substr(0, 12), printable(entry.name_space), epoch_text(entry.epoch, entry.live),
                    printable(entry.rejection)});
  }
  if (faulty > 0) console.print(table_text(rows));
  console.print(std::to_string(inventory.entries.size() - faulty) + " of " + std::to_string(inventory.entries.size()) +
                " entries are trusted here");
}

Result<RemoteInventory> inventory_of(const OpenRemote& remote, bool download, Console& console) {
  Progress progress(console, {download ? "fetching" : "reading", "entries"});
  return read_inventory(*remote.object_store, remote.policy, system_clock().wall(), download, progress.advance());
}

}  // namespace

Result<OpenRemote> open_remote(const Arguments& arguments, Console& console) {
  OpenRemote open{Config::load({}, EventEmitter(console.listener())), nullptr, {}};
  if (!arguments.remote.empty()) {
    // --remote accepts a relative directory; the setting requires an absolute one.
    const bool address = arguments.remote.find("://") != std::string::npos;
    const std::string where = address ? arguments.remote : std::filesystem::absolute(arguments.remote).string();
    if (Status applied = find_setting("remote.url")->apply(open.config, where); !applied) {
      return make_error(Code::InvalidArgument, "--remote: " + applied.error().message);
    }
  }
  if (open.config.remote_url.empty()) {
    return make_error(Code::InvalidArgument,
                      "no remote store is configured: give --remote, or set 'remote.url' (KILN_REMOTE)");
  }
  Result<std::shared_ptr<ObjectStore>> object_store = open_object_store(open.config);
  if (!object_store) return object_store.error();
  open.object_store = std::move(*object_store);
  Result<TrustPolicy> policy = configured_policy(open.config);
  if (!policy) return policy.error();
  open.policy = std::move(*policy);
  return open;
}

std::vector<RemoteGroup> groups_of(const RemoteInventory& inventory) {
  std::map<std::tuple<std::string, std::uint64_t, bool>, RemoteGroup> groups;
  for (const RemoteInventory::Entry& entry : inventory.entries) {
    RemoteGroup& group = groups[{entry.name_space, entry.epoch, entry.live}];
    group.name_space = entry.name_space;
    group.epoch = entry.epoch;
    group.live = entry.live;
    ++group.entries;
    group.bytes += entry.bytes;
    if (!entry.rejection.empty()) ++group.rejected;
  }
  std::vector<RemoteGroup> all;
  for (auto& [name, group] : groups) all.push_back(std::move(group));
  return all;
}

std::string epoch_text(std::uint64_t epoch, bool live) {
  return std::to_string(epoch) + (live ? " (" + day_text(epoch) + ')' : "");
}

int remote_stats_command(const Arguments& arguments, Console& console) {
  const Result<OpenRemote> remote = open_remote(arguments, console);
  if (!remote) return report(remote.error(), console);
  RemoteStats stats{remote->object_store->describe(), 0, std::nullopt, {}};
  const auto start = system_clock().steady();
  if (const Status answered = remote->object_store->probe(kProbe); !answered) return report(answered.error(), console);
  stats.ms = milliseconds_since(system_clock(), start);
  Result<RemoteInventory> inventory = inventory_of(*remote, false, console);
  if (inventory) {
    stats.inventory = std::move(*inventory);
  } else if (inventory.error().code == Code::Unsupported) {
    stats.list_error = listing_advice(inventory.error());
  } else {
    return report(inventory.error(), console);
  }
  if (arguments.json) {
    console.print(remote_stats_json(stats));
  } else {
    print_stats(stats, console);
  }
  return kSuccess;
}

int remote_verify_command(const Arguments& arguments, Console& console) {
  const Result<OpenRemote> remote = open_remote(arguments, console);
  if (!remote) return report(remote.error(), console);
  const Result<RemoteInventory> inventory = inventory_of(*remote, arguments.download, console);
  if (!inventory) {
    const Error& error = inventory.error();
    return report(error.code == Code::Unsupported ? make_error(error.code, listing_advice(error)) : error, console);
  }
  const auto faulty =
      static_cast<std::size_t>(std::count_if(inventory->entries.begin(), inventory->entries.end(),
                                             [](const auto& entry) { return !entry.rejection.empty(); }));
  if (arguments.json) {
    console.print(remote_verify_json(remote->object_store->describe(), *inventory));
  } else {
    print_faults(*inventory, faulty, console);
  }
  return faulty > 0 ? kFailed : kSuccess;
}

}  // namespace kiln::cli
