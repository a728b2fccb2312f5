// SPDX-License-Identifier: Apache-2.0
// kiln cache stats | gc | verify | clear: commands for whole caches. cache_entries.cpp has those for single entries.
#include <cstdio>

#include "apps/kiln/cache/cache_set.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/confirm.hpp"
#include "apps/kiln/output/progress.hpp"
#include "apps/kiln/output/render_json.hpp"
#include "base/error.hpp"
#include "session/components.hpp"
#include "session/config/settings.hpp"
#include "worker/pch_cache.hpp"

namespace kiln::cli {
namespace {

// The rows that fit on a screen; --json prints all.
constexpr std::size_t kMaxActivityRows = 20;

std::string saved_text(std::uint64_t ms) {
  const double seconds = static_cast<double>(ms) / 1e3;
  if (seconds < 120) return time_text(static_cast<double>(ms));
  char text[32];
  std::snprintf(text, sizeof text, seconds < 7200 ? "%.1f min" : "%.1f h",
                seconds < 7200 ? seconds / 60 : seconds / 3600);
  return text;
}

std::string activity_text(const std::vector<Activity>& activity) {
  std::vector<std::vector<std::string>> rows = {{"DAY", "PROGRAM", "HITS", "MISSES", "TIME SAVED"}};
  for (const Activity& each : activity) {
    if (rows.size() > kMaxActivityRows) break;
    rows.push_back({day_text(each.day), each.program.empty() ? "(unknown)" : each.program, std::to_string(each.hits()),
                    std::to_string(each.misses()), saved_text(each.saved_ms)});
  }
  std::string text = table_text(rows, "  ");
  if (activity.size() > kMaxActivityRows) {
    text += "  and " + std::to_string(activity.size() - kMaxActivityRows) + " more, which --json prints\n";
  }
  return text;
}

void print_stats(const CacheResult<DiskStore::Stats>& outcome, Console& console) {
  if (!outcome.result) return;
  const DiskStore::Stats& stats = *outcome.result;
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"entries", std::to_string(stats.entries)});
  std::string size = format_bytes(stats.bytes);
  if (stats.max_bytes != 0) {
    size += " of " + format_bytes(stats.max_bytes) + " (" + std::to_string(stats.bytes * 100 / stats.max_bytes) + " %)";
  }
  rows.push_back({"size", size});
  if (stats.entries > 0) rows.push_back({"last used", ago(stats.newest) + "; oldest entry " + ago(stats.oldest)});
  console.print(console.bold(outcome.root) + (outcome.writable ? "" : " (read only)") + '\n' + table_text(rows, "  "));
  if (!stats.activity.empty()) console.print(activity_text(stats.activity));
}

std::string collected_text(const CacheResult<GcResult>& outcome) {
  const GcResult& collected = *outcome.result;
  if (collected.busy) return outcome.root + ": skipped, another process is collecting it";
  return outcome.root + ": removed " + std::to_string(collected.removed_files) + " of " +
         std::to_string(collected.files) + " files, " + format_bytes(collected.removed_bytes) + " of " +
         format_bytes(collected.bytes);
}

// Prints the errors in every output format. The first error determines the exit code.
template <class T>
int finish(const std::vector<CacheResult<T>>& outcomes, Console& console) {
  int exit_code = kSuccess;
  for (const auto& outcome : outcomes) {
    if (outcome.result) continue;
    const int failed = report(outcome.result.error(), console);
    if (exit_code == kSuccess) exit_code = failed;
  }
  return exit_code;
}

int collect_command(const CacheSet& caches, const std::function<Result<GcResult>(DiskStore&)>& action,
                    const Arguments& arguments, Console& console) {
  const auto outcomes = [&] {
    const Progress progress(console, {"scanning the cache", {}});
    return caches.for_writable<GcResult>(action);
  }();
  if (outcomes.empty()) {
    console.error({Code::Unavailable, "no cache on this machine is writable; 'kiln doctor' shows the reason"});
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
  const CacheSet caches(console);
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
  const CacheSet caches(console, bound);
  for (const DiskStore* store : caches.writable())
    remove_bundled_headers(bundled_headers_directory({}, store->root()), kUnusedHeadersAge);
  return collect_command(caches, collect_garbage, arguments, console);
}

int cache_clear_command(const Arguments& arguments, Console& console) {
  const CacheSet caches(console);
  if (!caches.writable().empty()) {
    const std::string directories =
        join_strings(caches.writable(), [](const DiskStore* store) { return store->root(); });
    if (const auto stop = confirm_or_exit_code(arguments, "remove every entry of " + directories, console))
      return *stop;
  }
  // Also removes precompiled headers, results of library checks and installed headers. They are not entries and are not
  // counted.
  for (const DiskStore* store : caches.writable()) {
    PchCache({store->root() + "/v1/pch"}).clear();
    if (const auto place = pch_cache_options({}, store->root())) make_pch_cache(*place)->clear();
    PchCache({library_check_directory({}, store->root())}).clear();
    remove_bundled_headers(bundled_headers_directory({}, store->root()), std::chrono::hours(0));
  }
  return collect_command(caches, &DiskStore::clear, arguments, console);
}

int cache_verify_command(const Arguments& arguments, Console& console) {
  const CacheSet caches(console);
  std::vector<CacheResult<DiskStore::VerifyResult>> outcomes;
  for (const auto& store : caches.all()) {
    Progress progress(console, {"reading", "entries"});
    progress.at(store->root());
    outcomes.push_back({store->root(), store->is_writable(), store->verify(progress.advance())});
  }
  bool corruption = false;
  for (const auto& outcome : outcomes) {
    if (!outcome.result) continue;
    const DiskStore::VerifyResult& verified = *outcome.result;
    corruption = corruption || verified.corrupt > 0;
    if (arguments.json) continue;
    std::string text = outcome.root + ": " + std::to_string(verified.valid) + " valid, " +
                       std::to_string(verified.corrupt) + " corrupt";
    if (verified.corrupt > 0) text += outcome.writable ? " and removed" : "; the directory is not writable";
    console.print(text);
  }
  if (arguments.json) console.print(verified_json(outcomes));
  const int exit_code = finish(outcomes, console);
  return exit_code != kSuccess ? exit_code : corruption ? kFailed : kSuccess;
}

}  // namespace kiln::cli
