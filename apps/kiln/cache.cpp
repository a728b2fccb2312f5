// kiln cache stats | gc | verify | clear: the caches as a whole. cache_entries.cpp has what concerns single entries.
#include "apps/kiln/caches.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/confirm.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/progress.hpp"
#include "apps/kiln/render_json.hpp"
#include "base/error.hpp"
#include "compile/pch_shelf.hpp"
#include "session/settings.hpp"

namespace kiln::cli {
namespace {

void print_stats(const CacheOutcome<DiskStore::Stats>& outcome, Console& console) {
  if (!outcome.result) return;
  const DiskStore::Stats& stats = *outcome.result;
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"entries", std::to_string(stats.entries)});
  std::string size = size_text(stats.bytes);
  if (stats.bound != 0) {
    size += " of " + size_text(stats.bound) + " (" + std::to_string(stats.bytes * 100 / stats.bound) + " %)";
  }
  rows.push_back({"size", size});
  if (stats.entries > 0) rows.push_back({"last used", ago(stats.newest) + "; the oldest " + ago(stats.oldest)});
  console.print(console.bold(outcome.root) + (outcome.writable ? "" : " (read only)") + '\n' + table_text(rows, "  "));
}

std::string collected_text(const CacheOutcome<Collected>& outcome) {
  const Collected& collected = *outcome.result;
  if (collected.elsewhere) return outcome.root + ": another process is at it; nothing done";
  return outcome.root + ": removed " + std::to_string(collected.removed_files) + " of " +
         std::to_string(collected.files) + " files, " + size_text(collected.removed_bytes) + " of " +
         size_text(collected.bytes);
}

// Errors are told whatever the output's form; the first one decides the exit code.
template <class T>
int finish(const std::vector<CacheOutcome<T>>& outcomes, Console& console) {
  int exit_code = kDone;
  for (const auto& outcome : outcomes) {
    if (outcome.result) continue;
    const int failed = report(outcome.result.error(), console);
    if (exit_code == kDone) exit_code = failed;
  }
  return exit_code;
}

int collect_command(const Caches& caches, const std::function<Result<Collected>(DiskStore&)>& action,
                    const Arguments& arguments, Console& console) {
  const auto outcomes = [&] {
    const Progress progress(console, {"looking through the cache", {}});
    return caches.for_writable<Collected>(action);
  }();
  if (outcomes.empty()) {
    console.error({Code::Unavailable, "no cache here can be written; 'kiln doctor' says why"});
    return kUnavailable;
  }
  if (arguments.json) {
    console.print(collected_json(outcomes));
  } else {
    for (const auto& outcome : outcomes) {
      if (outcome.result) console.print(collected_text(outcome));
    }
  }
  return finish(outcomes, console);
}

}  // namespace

int cache_stats_command(const Arguments& arguments, Console& console) {
  const Caches caches(console);
  const auto outcomes = caches.for_each<DiskStore::Stats>(&DiskStore::stats);
  if (arguments.json) {
    console.print(stats_json(outcomes));
  } else {
    for (const auto& outcome : outcomes) print_stats(outcome, console);
  }
  return finish(outcomes, console);
}

int cache_gc_command(const Arguments& arguments, Console& console) {
  std::optional<std::uint64_t> bound;
  if (!arguments.max_size.empty()) {
    const Result<std::uint64_t> size = parse_size(arguments.max_size);
    if (!size) {
      console.error(size.error(), "--max-size");
      return kUsage;
    }
    bound = *size;
  }
  return collect_command(Caches(console, bound), collect_garbage, arguments, console);
}

int cache_clear_command(const Arguments& arguments, Console& console) {
  const Caches caches(console);
  if (!caches.writable().empty()) {
    const std::string folders = joined(caches.writable(), [](const DiskStore* store) { return store->root(); });
    if (const auto stop = unless_confirmed(arguments, "remove every entry of " + folders, console)) return *stop;
  }
  // What this host has precompiled for its compiles goes too; it is no entry, and is not counted.
  for (const DiskStore* store : caches.writable()) PchShelf({store->root() + "/v1/pch"}).clear();
  return collect_command(caches, &DiskStore::clear, arguments, console);
}

int cache_verify_command(const Arguments& arguments, Console& console) {
  const Caches caches(console);
  std::vector<CacheOutcome<DiskStore::Verified>> outcomes;
  for (const auto& store : caches.all()) {
    Progress progress(console, {"reading", "entries"});
    progress.at(store->root());
    outcomes.push_back({store->root(), store->writable(), store->verify(progress.advance())});
  }
  bool damage = false;
  for (const auto& outcome : outcomes) {
    if (!outcome.result) continue;
    const DiskStore::Verified& verified = *outcome.result;
    damage = damage || verified.damaged > 0;
    if (arguments.json) continue;
    std::string text = outcome.root + ": " + std::to_string(verified.sound) + " sound, " +
                       std::to_string(verified.damaged) + " damaged";
    if (verified.damaged > 0) text += outcome.writable ? " and removed" : "; the folder cannot be written";
    console.print(text);
  }
  if (arguments.json) console.print(verified_json(outcomes));
  const int exit_code = finish(outcomes, console);
  return exit_code != kDone ? exit_code : damage ? kFailed : kDone;
}

}  // namespace kiln::cli
