// SPDX-License-Identifier: Apache-2.0
// kiln remote gc | rm: commands that remove entries from the remote store.
#include "apps/kiln/cache/cache_set.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/confirm.hpp"
#include "apps/kiln/output/progress.hpp"
#include "apps/kiln/remote/remote.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "cache/disk_store.hpp"
#include "remote/remote_store.hpp"
#include "session/config/settings.hpp"
#include "session/remote_factory.hpp"

namespace kiln::cli {
namespace {

constexpr std::size_t kMinDigits = 4;  // minimum length of a key prefix
constexpr std::chrono::seconds kRemoveLimit(30);

std::string cleaned_text(const RemoteGcReport& upkeep) {
  return upkeep.remote + ": " + (upkeep.dry_run ? "would remove " : "removed ") +
         format_count(upkeep.cleaned.entries, "entry", "entries") + " and " +
         format_count(upkeep.cleaned.contents, "content", "contents") + ", " + format_bytes(upkeep.cleaned.bytes);
}

int run_gc(const OpenRemote& remote, const RemoteGcOptions& cleaning, std::string policy_line,
           const Arguments& arguments, Console& console) {
  const Result<RemoteGcResult> cleaned = [&] {
    Progress progress(console, {"reading and removing entries,", "entries"});
    return collect_remote_garbage(*remote.object_store, remote.policy, system_clock().wall(), cleaning,
                                  progress.advance());
  }();
  if (!cleaned) return report(cleaned.error(), console);
  const RemoteGcReport upkeep{remote.object_store->describe(), *cleaned, cleaning.dry_run, std::move(policy_line)};
  if (arguments.json) {
    console.print(remote_upkeep_json(upkeep));
    return kSuccess;
  }
  console.print(cleaned_text(upkeep));
  if (!upkeep.policy_line.empty()) {
    console.print(
        "\nHosts keep entries that they have fetched, and a host with write access can upload them again. To make "
        "every\nhost reject them, add this line to the policies; fetched entries are then no longer used.\n\n"
        "[minimum_epoch]\n" +
        upkeep.policy_line);
  }
  return kSuccess;
}

Result<RemoteGcOptions> cleaning_of(const Arguments& arguments) {
  RemoteGcOptions cleaning;
  if (!arguments.max_size.empty()) {
    const Result<std::uint64_t> size = parse_size(arguments.max_size);
    if (!size) return make_error(Code::InvalidArgument, "--max-size: " + size.error().message);
    cleaning.max_bytes = *size;
  }
  cleaning.min_epoch = arguments.epoch;
  cleaning.name_space = arguments.name_space.value_or("");
  cleaning.dry_run = arguments.dry_run;
  if (!cleaning.name_space.empty() && !is_name_space(cleaning.name_space)) {
    return make_error(Code::InvalidArgument, "--namespace: '" + cleaning.name_space + "' is not a valid namespace");
  }
  if (arguments.name_space && !arguments.epoch) {
    return make_error(Code::InvalidArgument,
                      "--namespace requires --before-epoch: give the epoch before which entries are removed");
  }
  return cleaning;
}

// A key and the names of its actions, one per namespace.
struct Actions {
  ArtifactKey key;
  std::vector<Digest> names;
};

// Returns the action names in the namespaces that this host requests, for an object store that cannot be listed.
Result<Actions> named_actions(const OpenRemote& remote, const ArtifactKey& key) {
  Actions actions{key, {}};
  const NamespaceScope scope = NamespaceScope().narrowed(remote.config.trust_namespaces);
  for (const std::string& each : remote_namespaces(remote.policy, remote_namespaces_of(remote.config), scope)) {
    actions.names.push_back(action_name(each, key));
  }
  if (!actions.names.empty()) return actions;
  return make_error(Code::InvalidArgument,
                    "the store cannot be listed and the namespaces of the key are unknown; set trust.namespaces");
}

Result<Actions> find_actions(const OpenRemote& remote, const std::string& text) {
  const auto whole = Digest::from_hex(text);
  if (text.size() < kMinDigits || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return make_error(Code::InvalidArgument, "'" + text + "' is not a key; 'kiln remote verify --json' lists the keys");
  }
  const auto inventory = read_inventory(*remote.object_store, remote.policy, system_clock().wall(), false);
  if (!inventory && whole && inventory.error().code == Code::Unsupported)
    return named_actions(remote, ArtifactKey{*whole});
  if (!inventory) return make_error(inventory.error().code, inventory.error().message + "; give the full key");
  Actions actions;
  for (const RemoteInventory::Entry& each : inventory->entries) {
    if (each.key == ArtifactKey() || !each.key.hex().starts_with(text)) continue;
    if (!actions.names.empty() && actions.key != each.key) {
      return make_error(Code::InvalidArgument, "several keys start with " + text + "; give a longer prefix");
    }
    actions.key = each.key;
    actions.names.push_back(each.name);
  }
  // Removing an entry that does not exist succeeds.
  if (actions.names.empty() && whole) return Actions{ArtifactKey{*whole}, {}};
  if (actions.names.empty()) {
    return make_error(Code::Io, "no key starts with " + text + "; 'kiln remote verify --json' lists the keys");
  }
  return actions;
}

std::vector<std::string> remove_from_local_caches(const Config& config, const ArtifactKey& key,
                                                  const EventEmitter& emitter) {
  std::vector<std::string> directories;
  for (const std::string& directory : fetched_directories(config)) {
    DiskStore::Options options;
    options.root = directory;
    const auto store = DiskStore::open(std::move(options), emitter);
    if (store && (*store)->remove(key)) directories.push_back(directory);
  }
  return directories;
}

int remove_key(const OpenRemote& remote, const Arguments& arguments, Console& console) {
  const EventEmitter emitter(console.listener());
  const Result<Actions> actions = find_actions(remote, arguments.key);
  if (!actions) return report(actions.error(), console);
  const ArtifactKey* const key = &actions->key;
  const std::string where = remote.object_store->describe();
  if (const auto stop = confirm_or_exit_code(arguments, "remove " + key->hex() + " from " + where, console))
    return *stop;
  for (const Digest& name : actions->names) {
    const Status removed = remote.object_store->remove(ObjectStore::Bucket::ActionCache, name, kRemoveLimit);
    if (!removed) return report(removed.error(), console);
  }
  const RemovedEntry removed_entry{where, *key, remove_from_local_caches(remote.config, *key, emitter)};
  if (arguments.json) {
    console.print(removed_entry_json(removed_entry));
    return kSuccess;
  }
  console.print(key->hex().substr(0, 12) + " was removed from " + where +
                (removed_entry.directories.empty() ? "; this host had not fetched it"
                                                   : " and from the fetched entries of this host") +
                "\nOther hosts that have fetched it keep it until their policy changes. To stop its use everywhere, "
                "raise\nthe minimum_epoch of its namespace ('kiln remote rm --before-epoch'), or revoke the key that "
                "signed it (docs/how-to/sign-and-trust.md).");
  return kSuccess;
}

}  // namespace

int remote_gc_command(const Arguments& arguments, Console& console) {
  const Result<RemoteGcOptions> cleaning = cleaning_of(arguments);
  if (!cleaning) return report(cleaning.error(), console);
  const Result<OpenRemote> remote = open_remote(arguments, console);
  if (!remote) return report(remote.error(), console);
  if (!cleaning->dry_run) {
    const std::string what = "clean up " + remote->object_store->describe();
    if (const auto stop = confirm_or_exit_code(arguments, what, console)) return *stop;
  }
  return run_gc(*remote, *cleaning, {}, arguments, console);
}

int remote_rm_command(const Arguments& arguments, Console& console) {
  if (arguments.key.empty() == !arguments.epoch) {
    return report({Code::InvalidArgument, "give either KEY, or --before-epoch N for all older entries"}, console);
  }
  const Result<OpenRemote> remote = open_remote(arguments, console);
  if (!remote) return report(remote.error(), console);
  if (!arguments.key.empty()) return remove_key(*remote, arguments, console);
  const Result<RemoteGcOptions> cleaning = cleaning_of(arguments);
  if (!cleaning) return report(cleaning.error(), console);
  const std::string epoch = std::to_string(*arguments.epoch);
  const std::string whose = arguments.name_space ? " of " + *arguments.name_space : "";
  const std::string what =
      "remove every entry" + whose + " before epoch " + epoch + " from " + remote->object_store->describe();
  if (const auto stop = confirm_or_exit_code(arguments, what, console)) return *stop;
  const std::string line = '"' + arguments.name_space.value_or("*") + "\" = " + epoch;
  return run_gc(*remote, *cleaning, line, arguments, console);
}

}  // namespace kiln::cli
