// kiln remote stats | verify: what is in the store that hosts share. remote_upkeep.cpp has what removes something.
#include "apps/kiln/remote.hpp"
#include "apps/kiln/progress.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "apps/kiln/bundle_files.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "session/remote_parts.hpp"
#include "session/settings.hpp"

namespace kiln::cli {
namespace {

constexpr std::chrono::seconds kProbe{10};

// What it means that a server cannot list itself.
std::string listing_advice(const Error& error) {
  return error.message + "; nginx can be told to (docs/remote-http.md), and bazel-remote keeps its own house";
}

void print_stats(const RemoteStats& stats, Console& console) {
  console.print(console.bold(stats.remote) + " answers in " + time_text(stats.ms));
  if (!stats.inventory) {
    console.print("What is there cannot be said: " + stats.cannot_list);
    return;
  }
  const RemoteInventory& inventory = *stats.inventory;
  std::vector<std::vector<std::string>> rows = {{"NAMESPACE", "EPOCH", "ENTRIES", "SIZE", "BELIEVED HERE"}};
  for (const RemoteGroup& group : groups_of(inventory)) {
    rows.push_back({group.name_space.empty() ? "(none)" : printable(group.name_space),
                    group.name_space.empty() ? "" : epoch_text(group.epoch, group.live), std::to_string(group.entries),
                    size_text(group.bytes), std::to_string(group.entries - group.refused)});
  }
  console.print(rows.size() == 1 ? "It has no entries." : table_text(rows));
  std::string rest = counted(inventory.hints, "list", "lists") + " of closures, " + size_text(inventory.hint_bytes);
  if (inventory.unused > 0) {
    rest += "; " + counted(inventory.unused, "content", "contents") + " that no entry states, " +
            size_text(inventory.unused_bytes) + ": 'kiln remote gc' removes what is older than an hour";
  }
  console.print(rest);
}

void print_faults(const RemoteInventory& inventory, std::size_t faulty, Console& console) {
  std::vector<std::vector<std::string>> rows = {{"KEY", "NAMESPACE", "EPOCH", "WHY NOT"}};
  for (const RemoteInventory::Entry& entry : inventory.entries) {
    if (entry.fault.empty()) continue;
    rows.push_back({entry.key.hex().substr(0, 12), printable(entry.name_space), epoch_text(entry.epoch, entry.live),
                    printable(entry.fault)});
  }
  if (faulty > 0) console.print(table_text(rows));
  console.print(std::to_string(inventory.entries.size() - faulty) + " of " + std::to_string(inventory.entries.size()) +
                " entries are believed here");
}

Result<RemoteInventory> inventory_of(const OpenRemote& remote, bool contents, Console& console) {
  Progress progress(console, {contents ? "fetching" : "reading", "entries"});
  return take_inventory(*remote.depot, remote.policy, system_clock().wall(), contents, progress.advance());
}

}  // namespace

Result<OpenRemote> open_remote(const Arguments& arguments, Console& console) {
  OpenRemote open{Config::load({}, Observer(console.listener())), nullptr, {}};
  if (!arguments.remote.empty()) {
    // A folder may be given as people type it; settings are absolute.
    const bool address = arguments.remote.find("://") != std::string::npos;
    const std::string where = address ? arguments.remote : std::filesystem::absolute(arguments.remote).string();
    if (Status applied = find_setting("remote")->apply(open.config, where); !applied) {
      return failure(Code::InvalidArgument, "--remote: " + applied.error().message);
    }
  }
  if (open.config.remote.empty()) {
    return failure(
        Code::InvalidArgument,
        "no remote store is configured: say which with --remote, or with the setting 'remote' (KILN_REMOTE)");
  }
  Result<std::shared_ptr<Depot>> depot = open_depot(open.config);
  if (!depot) return depot.error();
  open.depot = std::move(*depot);
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
    if (!entry.fault.empty()) ++group.refused;
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
  RemoteStats stats{remote->depot->describe(), 0, std::nullopt, {}};
  const auto start = system_clock().steady();
  if (const Status answered = remote->depot->probe(kProbe); !answered) return report(answered.error(), console);
  stats.ms = milliseconds_since(system_clock(), start);
  Result<RemoteInventory> inventory = inventory_of(*remote, false, console);
  if (inventory) {
    stats.inventory = std::move(*inventory);
  } else if (inventory.error().code == Code::Unsupported) {
    stats.cannot_list = listing_advice(inventory.error());
  } else {
    return report(inventory.error(), console);
  }
  if (arguments.json) {
    console.print(remote_stats_json(stats));
  } else {
    print_stats(stats, console);
  }
  return kDone;
}

int remote_verify_command(const Arguments& arguments, Console& console) {
  const Result<OpenRemote> remote = open_remote(arguments, console);
  if (!remote) return report(remote.error(), console);
  const Result<RemoteInventory> inventory = inventory_of(*remote, arguments.contents, console);
  if (!inventory) {
    const Error& error = inventory.error();
    return report(error.code == Code::Unsupported ? failure(error.code, listing_advice(error)) : error, console);
  }
  const auto faulty = static_cast<std::size_t>(std::count_if(inventory->entries.begin(), inventory->entries.end(),
                                                             [](const auto& entry) { return !entry.fault.empty(); }));
  if (arguments.json) {
    console.print(remote_verify_json(remote->depot->describe(), *inventory));
  } else {
    print_faults(*inventory, faulty, console);
  }
  return faulty > 0 ? kFailed : kDone;
}

}  // namespace kiln::cli
