// SPDX-License-Identifier: Apache-2.0
// kiln cache ls | show | extract: commands for single entries.
#include <algorithm>

#include <kiln/cccl.hpp>

#include "apps/kiln/cache/cache_set.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/output.hpp"
#include "apps/kiln/output/render_json.hpp"
#include "base/error.hpp"

namespace kiln::cli {
namespace {

// Returns every entry of every cache, in the order of the cache path. Reports and skips a cache that cannot be read.
std::vector<CacheEntry> entries_of(const CacheSet& caches, Console& console, int& exit_code) {
  std::vector<CacheEntry> entries;
  for (const auto& store : caches.all()) {
    Result<std::vector<DiskStore::EntryInfo>> listed = store->list_entries();
    if (!listed) {
      exit_code = report(listed.error(), console);
      continue;
    }
    for (DiskStore::EntryInfo& each : *listed) entries.push_back({store->root(), std::move(each)});
  }
  return entries;
}

struct LoadedCacheEntry {
  CacheEntry entry;
  Artifact artifact;
};

// Returns the entry whose key starts with `prefix`. If several caches have the key, the first valid entry is used.
Result<LoadedCacheEntry> find(const CacheSet& caches, const std::string& prefix, Console& console) {
  if (prefix.empty() || prefix.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return make_error(Code::InvalidArgument, "'" + prefix + "' is not a key; 'kiln cache ls' lists the keys");
  }
  int ignored = kSuccess;
  std::vector<CacheEntry> matches = entries_of(caches, console, ignored);
  std::erase_if(matches, [&](const CacheEntry& each) { return !each.listed.key.hex().starts_with(prefix); });
  if (matches.empty()) return make_error(Code::Io, "no key starts with " + prefix + "; 'kiln cache ls' lists the keys");
  for (const CacheEntry& each : matches) {
    if (each.listed.key == matches.front().listed.key) continue;
    return make_error(Code::InvalidArgument, "several keys start with " + prefix + ", for example " +
                                                 matches.front().listed.key.hex().substr(0, prefix.size() + 6) +
                                                 " and " + each.listed.key.hex().substr(0, prefix.size() + 6) +
                                                 "; give a longer prefix");
  }
  for (const CacheEntry& each : matches) {
    for (const auto& store : caches.all()) {
      if (store->root() != each.cache) continue;
      Result<std::optional<Hit>> hit = store->get(each.listed.key, {});
      if (!hit) return hit.error();
      if (*hit) return LoadedCacheEntry{each, std::move((*hit)->artifact)};
    }
  }
  return make_error(Code::Corrupt, "the entry was corrupt and has been removed; the next compile builds it again");
}

std::string show_text(const LoadedCacheEntry& found) {
  const DiskStore::EntryInfo& listed = found.entry.listed;
  std::vector<std::vector<std::string>> rows = {
      {"key", listed.key.hex()},
      {"cache", found.entry.cache},
      {"unit", listed.unit},
      {"target", found.artifact.target.name() + " (" + to_string(found.artifact.target.form) + ")"},
      {"compiler", listed.compiler},
      {"code", format_bytes(listed.payload) + " in a file of " + format_bytes(listed.bytes)},
      {"built in", time_text(listed.cost_ms)},
      {"last used", ago(listed.last_used)},
  };
  if (const auto info = cccl::artifact_info(found.artifact)) {
    rows.push_back({"capability", std::to_string(info->capability)});
    rows.push_back({"runtime policy", std::to_string(info->policy_bytes) + " bytes"});
    for (const std::string& kernel : info->kernels) rows.push_back({"kernel", kernel});
  } else {
    for (const EntryPoint& entry : found.artifact.entries) rows.push_back({"entry", entry.name + " = " + entry.symbol});
  }
  std::string text = table_text(rows);
  if (!found.artifact.metadata.log.empty()) text += "compiler log:\n" + found.artifact.metadata.log + '\n';
  return text;
}

}  // namespace

int cache_ls_command(const Arguments& arguments, Console& console) {
  const CacheSet caches(console);
  int exit_code = kSuccess;
  std::vector<CacheEntry> entries = entries_of(caches, console, exit_code);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.listed.last_used > b.listed.last_used; });
  if (arguments.json) {
    console.print(entries_json(entries));
    return exit_code;
  }
  std::vector<std::vector<std::string>> rows = {{"KEY", "UNIT", "TARGET", "SIZE", "BUILT IN", "USED", "COMPILER"}};
  for (const CacheEntry& each : entries) {
    const DiskStore::EntryInfo& listed = each.listed;
    rows.push_back({listed.key.hex().substr(0, 12), listed.unit, listed.target.name(), format_bytes(listed.payload),
                    time_text(listed.cost_ms), ago(listed.last_used), listed.compiler});
  }
  if (entries.empty()) {
    console.print("The cache is empty. 'kiln compile' adds entries.");
  } else {
    console.print(table_text(rows));
  }
  return exit_code;
}

int cache_show_command(const Arguments& arguments, Console& console) {
  const CacheSet caches(console);
  const Result<LoadedCacheEntry> found = find(caches, arguments.key, console);
  if (!found) return report(found.error(), console);
  console.print(arguments.json ? entry_json(found->entry, found->artifact) : show_text(*found));
  return kSuccess;
}

int cache_extract_command(const Arguments& arguments, Console& console) {
  const CacheSet caches(console);
  const Result<LoadedCacheEntry> found = find(caches, arguments.key, console);
  if (!found) return report(found.error(), console);
  const bool to_stdout = arguments.output == "-";
  if (Status written = write_output(arguments.output, found->artifact.bytes.view()); !written) {
    console.error(written.error());
    return kFailed;
  }
  if (to_stdout) return kSuccess;
  if (arguments.json) {
    console.print(entry_json(found->entry, found->artifact));
  } else {
    console.print(arguments.output + ": " + format_bytes(found->artifact.bytes.size()) + ", " +
                  to_string(found->artifact.target.form) + " of " + found->entry.listed.unit + " for " +
                  found->artifact.target.name());
  }
  return kSuccess;
}

}  // namespace kiln::cli
