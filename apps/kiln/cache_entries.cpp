// kiln cache ls | show | extract: single entries.
#include <algorithm>

#include "apps/kiln/caches.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output.hpp"
#include "apps/kiln/render_json.hpp"
#include "base/error.hpp"

namespace kiln::cli {
namespace {

// Every entry of every cache, in the order of the cache path. A cache that cannot be read is told and passed over.
std::vector<CacheEntry> entries_of(const Caches& caches, Console& console, int& exit_code) {
  std::vector<CacheEntry> entries;
  for (const auto& store : caches.all()) {
    Result<std::vector<DiskStore::Listed>> listed = store->list();
    if (!listed) {
      exit_code = report(listed.error(), console);
      continue;
    }
    for (DiskStore::Listed& each : *listed) entries.push_back({store->root(), std::move(each)});
  }
  return entries;
}

struct Found {
  CacheEntry entry;
  Artifact artifact;
};

// The one entry whose key begins like this. One key in two caches is one entry: the first that is sound is taken.
Result<Found> find(const Caches& caches, const std::string& prefix, Console& console) {
  if (prefix.empty() || prefix.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return failure(Code::InvalidArgument, "'" + prefix + "' is no key; 'kiln cache ls' lists them");
  }
  int ignored = kDone;
  std::vector<CacheEntry> matches = entries_of(caches, console, ignored);
  std::erase_if(matches, [&](const CacheEntry& each) { return !each.listed.key.hex().starts_with(prefix); });
  if (matches.empty())
    return failure(Code::Io, "no entry's key begins with " + prefix + "; 'kiln cache ls' lists them");
  for (const CacheEntry& each : matches) {
    if (each.listed.key == matches.front().listed.key) continue;
    return failure(Code::InvalidArgument, "several keys begin with " + prefix + ", for example " +
                                              matches.front().listed.key.hex().substr(0, prefix.size() + 6) + " and " +
                                              each.listed.key.hex().substr(0, prefix.size() + 6) + "; give more of it");
  }
  for (const CacheEntry& each : matches) {
    for (const auto& store : caches.all()) {
      if (store->root() != each.cache) continue;
      Result<std::optional<Hit>> hit = store->get(each.listed.key);
      if (!hit) return hit.error();
      if (*hit) return Found{each, std::move((*hit)->artifact)};
    }
  }
  return failure(Code::Corrupt, "the entry was damaged and has been removed; the next compile builds it again");
}

std::string show_text(const Found& found) {
  const DiskStore::Listed& listed = found.entry.listed;
  std::vector<std::vector<std::string>> rows = {
      {"key", listed.key.hex()},
      {"cache", found.entry.cache},
      {"unit", listed.unit},
      {"target", found.artifact.target.name() + " (" + to_string(found.artifact.target.form) + ")"},
      {"compiler", listed.compiler},
      {"code", size_text(listed.payload) + " in a file of " + size_text(listed.bytes)},
      {"built in", time_text(listed.cost_ms)},
      {"last used", ago(listed.last_used)},
  };
  for (const Entry& entry : found.artifact.entries) rows.push_back({"entry", entry.name + " = " + entry.symbol});
  std::string text = table_text(rows);
  if (!found.artifact.about.log.empty()) text += "compiler's log:\n" + found.artifact.about.log + '\n';
  return text;
}

}  // namespace

int cache_ls_command(const Arguments& arguments, Console& console) {
  const Caches caches(console);
  int exit_code = kDone;
  std::vector<CacheEntry> entries = entries_of(caches, console, exit_code);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.listed.last_used > b.listed.last_used; });
  if (arguments.json) {
    console.print(entries_json(entries));
    return exit_code;
  }
  std::vector<std::vector<std::string>> rows = {{"KEY", "UNIT", "TARGET", "SIZE", "BUILT IN", "USED", "COMPILER"}};
  for (const CacheEntry& each : entries) {
    const DiskStore::Listed& listed = each.listed;
    rows.push_back({listed.key.hex().substr(0, 12), listed.unit, listed.target.name(), size_text(listed.payload),
                    time_text(listed.cost_ms), ago(listed.last_used), listed.compiler});
  }
  if (entries.empty()) {
    console.print("The cache is empty. 'kiln compile' puts something in.");
  } else {
    console.print(table_text(rows));
  }
  return exit_code;
}

int cache_show_command(const Arguments& arguments, Console& console) {
  const Caches caches(console);
  const Result<Found> found = find(caches, arguments.key, console);
  if (!found) return report(found.error(), console);
  console.print(arguments.json ? entry_json(found->entry, found->artifact) : show_text(*found));
  return kDone;
}

int cache_extract_command(const Arguments& arguments, Console& console) {
  const Caches caches(console);
  const Result<Found> found = find(caches, arguments.key, console);
  if (!found) return report(found.error(), console);
  const bool to_stdout = arguments.output == "-";
  if (Status written = write_output(arguments.output, found->artifact.bytes.view()); !written) {
    console.error(written.error());
    return kFailed;
  }
  if (to_stdout) return kDone;
  if (arguments.json) {
    console.print(entry_json(found->entry, found->artifact));
  } else {
    console.print(arguments.output + ": " + size_text(found->artifact.bytes.size()) + ", " +
                  to_string(found->artifact.target.form) + " of " + found->entry.listed.unit + " for " +
                  found->artifact.target.name());
  }
  return kDone;
}

}  // namespace kiln::cli
