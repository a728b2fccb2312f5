// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/cache/cache_set.hpp"

#include <fcntl.h>

#include "base/clock.hpp"
#include "base/files/files.hpp"
#include "session/components.hpp"
#include "session/remote_factory.hpp"

namespace kiln::cli {
namespace {

constexpr std::chrono::hours kUnusedPolicy{24 * 30};

}  // namespace

std::string ago(std::chrono::nanoseconds moment) {
  return age_text(std::chrono::duration_cast<std::chrono::seconds>(system_clock().wall() - moment));
}

CacheSet::CacheSet(Console& console, std::optional<std::uint64_t> bound) {
  const EventEmitter emitter(console.listener());
  const Config config = Config::load({}, emitter);
  const auto add = [&](const std::string& root, bool read_only) {
    DiskStore::Options options = disk_store_options(config, root, read_only);
    if (bound) options.max_bytes = *bound;
    Result<std::unique_ptr<DiskStore>> store = DiskStore::open(std::move(options), emitter);
    if (store) {
      stores_.push_back(std::move(*store));
    } else {
      console.warn(store.error().message);
    }
  };
  for (std::size_t i = 0; i < config.cache_path.size(); ++i) add(config.cache_path[i], i > 0);
  for (const std::string& root : fetched_directories(config)) add(root, false);
}

// Entries fetched from a remote store are stored in the first cache directory, in one directory per trust policy.
std::vector<std::string> fetched_directories(const Config& config) {
  std::vector<std::string> directories;
  if (config.cache_path.empty()) return directories;
  for (const std::string& name : list_directory(AT_FDCWD, config.cache_path.front().c_str())) {
    const std::string directory = name.substr(name.rfind('/') + 1);
    if (directory.starts_with(kFetched)) directories.push_back(join_path(config.cache_path.front(), directory));
  }
  return directories;
}

Result<GcResult> collect_garbage(DiskStore& store) {
  const std::string directory = store.root().substr(store.root().rfind('/') + 1);
  if (!directory.starts_with(kFetched)) return store.gc();
  // If a policy is no longer in use, its directory remains.
  const auto stats = store.stats();
  if (stats && stats->entries > 0 && system_clock().wall() - stats->newest > kUnusedPolicy) return store.clear();
  return store.gc();
}

std::vector<DiskStore*> CacheSet::writable() const {
  std::vector<DiskStore*> stores;
  for (const auto& store : stores_) {
    if (store->is_writable()) stores.push_back(store.get());
  }
  return stores;
}

}  // namespace kiln::cli
