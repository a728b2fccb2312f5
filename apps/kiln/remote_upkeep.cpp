// kiln remote gc | disown: what removes something from the store that hosts share.
#include "apps/kiln/caches.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/confirm.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/progress.hpp"
#include "apps/kiln/remote.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "remote/remote_store.hpp"
#include "session/remote_parts.hpp"
#include "session/settings.hpp"
#include "store/disk_store.hpp"

namespace kiln::cli {
namespace {

constexpr std::size_t kLeastDigits = 4;  // of a key that is shortened

std::string cleaned_text(const RemoteUpkeep& upkeep) {
  return upkeep.remote + ": " + (upkeep.dry_run ? "would remove " : "removed ") +
         counted(upkeep.cleaned.entries, "entry", "entries") + " and " +
         counted(upkeep.cleaned.contents, "content", "contents") + ", " + size_text(upkeep.cleaned.bytes);
}

int clean_up(const OpenRemote& remote, const RemoteCleaning& cleaning, std::string policy_line,
             const Arguments& arguments, Console& console) {
  const Result<RemoteCleaned> cleaned = [&] {
    Progress progress(console, {"reading what entries state, removing what goes,", "entries"});
    return clean(*remote.depot, remote.policy, system_clock().wall(), cleaning, progress.advance());
  }();
  if (!cleaned) return report(cleaned.error(), console);
  const RemoteUpkeep upkeep{remote.depot->describe(), *cleaned, cleaning.dry_run, std::move(policy_line)};
  if (arguments.json) {
    console.print(remote_upkeep_json(upkeep));
    return kDone;
  }
  console.print(cleaned_text(upkeep));
  if (!upkeep.policy_line.empty()) {
    console.print(
        "\nHosts keep what they have fetched, and anybody who has it can put it back. What makes every host "
        "refuse it\nis its policy: roll this out, and what was fetched before is not used any more.\n\n"
        "[minimum_epoch]\n" +
        upkeep.policy_line);
  }
  return kDone;
}

Result<RemoteCleaning> cleaning_of(const Arguments& arguments) {
  RemoteCleaning cleaning;
  if (!arguments.max_size.empty()) {
    const Result<std::uint64_t> size = parse_size(arguments.max_size);
    if (!size) return failure(Code::InvalidArgument, "--max-size: " + size.error().message);
    cleaning.most_bytes = *size;
  }
  cleaning.least_epoch = arguments.epoch;
  cleaning.name_space = arguments.name_space.value_or("");
  cleaning.dry_run = arguments.dry_run;
  if (!cleaning.name_space.empty() && !is_name_space(cleaning.name_space)) {
    return failure(Code::InvalidArgument, "--namespace: '" + cleaning.name_space + "' is no namespace");
  }
  if (arguments.name_space && !arguments.epoch) {
    return failure(Code::InvalidArgument, "--namespace goes with --epoch: say before which one entries go");
  }
  return cleaning;
}

// The one entry whose key begins like this.
Result<Key> find_key(const OpenRemote& remote, const std::string& text) {
  if (const auto whole = Digest::from_hex(text)) return Key{*whole};
  if (text.size() < kLeastDigits || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return failure(Code::InvalidArgument, "'" + text + "' is no key; 'kiln remote verify --json' lists them");
  }
  const auto listed = remote.depot->list(Depot::Shelf::Action, std::chrono::minutes(1));
  if (!listed) return failure(listed.error().code, listed.error().message + "; give the whole key");
  std::optional<Key> found;
  for (const Depot::Listed& each : *listed) {
    if (!each.name.hex().starts_with(text)) continue;
    if (found) return failure(Code::InvalidArgument, "several entries begin with " + text + "; give more of it");
    found = Key{each.name};
  }
  if (!found)
    return failure(Code::Io, "no entry's key begins with " + text + "; 'kiln remote verify --json' lists them");
  return *found;
}

std::vector<std::string> forget_here(const Config& config, const Key& key, const Observer& observer) {
  std::vector<std::string> folders;
  for (const std::string& folder : fetched_folders(config)) {
    DiskStore::Options options;
    options.root = folder;
    const auto store = DiskStore::open(std::move(options), observer);
    if (store && (*store)->remove(key)) folders.push_back(folder);
  }
  return folders;
}

int disown_key(const OpenRemote& remote, const Arguments& arguments, Console& console) {
  const Observer observer(console.listener());
  const Result<Key> key = find_key(remote, arguments.key);
  if (!key) return report(key.error(), console);
  const std::string where = remote.depot->describe();
  if (const auto stop = unless_confirmed(arguments, "withdraw " + key->hex() + " from " + where, console)) return *stop;
  RemoteStore::Parts parts;
  parts.depot = remote.depot;
  parts.policy = std::make_shared<const TrustPolicy>(remote.policy);
  parts.observer = observer;
  if (const Status removed = RemoteStore(std::move(parts)).remove(*key); !removed) {
    return report(removed.error(), console);
  }
  const Disowned disowned{where, *key, forget_here(remote.config, *key, observer)};
  if (arguments.json) {
    console.print(disowned_json(disowned));
    return kDone;
  }
  console.print(
      key->hex().substr(0, 12) + " is withdrawn from " + where +
      (disowned.folders.empty() ? "; this host had not fetched it" : " and from what this host had fetched") +
      "\nOther hosts that have fetched it keep it until their policy changes: where it must not be used any "
      "more, raise\nthe minimum_epoch of its namespace ('kiln remote disown --epoch'), or revoke the key that "
      "signed it (docs/trust.md).");
  return kDone;
}

}  // namespace

int remote_gc_command(const Arguments& arguments, Console& console) {
  const Result<RemoteCleaning> cleaning = cleaning_of(arguments);
  if (!cleaning) return report(cleaning.error(), console);
  const Result<OpenRemote> remote = open_remote(arguments, console);
  if (!remote) return report(remote.error(), console);
  if (!cleaning->dry_run) {
    const std::string what = "clean up " + remote->depot->describe();
    if (const auto stop = unless_confirmed(arguments, what, console)) return *stop;
  }
  return clean_up(*remote, *cleaning, {}, arguments, console);
}

int remote_disown_command(const Arguments& arguments, Console& console) {
  if (arguments.key.empty() == !arguments.epoch) {
    return report({Code::InvalidArgument, "say what to disown: either KEY, or --epoch N for all that is older"},
                  console);
  }
  const Result<OpenRemote> remote = open_remote(arguments, console);
  if (!remote) return report(remote.error(), console);
  if (!arguments.key.empty()) return disown_key(*remote, arguments, console);
  const Result<RemoteCleaning> cleaning = cleaning_of(arguments);
  if (!cleaning) return report(cleaning.error(), console);
  const std::string epoch = std::to_string(*arguments.epoch);
  const std::string whose = arguments.name_space ? " of " + *arguments.name_space : "";
  const std::string what =
      "withdraw every entry" + whose + " before epoch " + epoch + " from " + remote->depot->describe();
  if (const auto stop = unless_confirmed(arguments, what, console)) return *stop;
  const std::string line = '"' + arguments.name_space.value_or("*") + "\" = " + epoch;
  return clean_up(*remote, *cleaning, line, arguments, console);
}

}  // namespace kiln::cli
