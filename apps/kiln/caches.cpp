#include "apps/kiln/caches.hpp"

#include <fcntl.h>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "session/remote_parts.hpp"
#include "session/toolbox.hpp"

namespace kiln::cli {
namespace {

constexpr std::chrono::hours kUnusedPolicy{24 * 30};

}  // namespace

std::string ago(std::chrono::nanoseconds moment) {
  return age_text(std::chrono::duration_cast<std::chrono::seconds>(system_clock().wall() - moment));
}

Caches::Caches(Console& console, std::optional<std::uint64_t> bound) {
  const Observer observer(console.listener());
  const Config config = Config::load({}, observer);
  const auto add = [&](const std::string& root, bool read_only) {
    DiskStore::Options options = disk_options_of(config, root, read_only);
    if (bound) options.size_bound = *bound;
    Result<std::unique_ptr<DiskStore>> store = DiskStore::open(std::move(options), observer);
    if (store) {
      stores_.push_back(std::move(*store));
    } else {
      console.warn(store.error().message);
    }
  };
  for (std::size_t i = 0; i < config.cache_path.size(); ++i) add(config.cache_path[i], i > 0);
  for (const std::string& root : fetched_folders(config)) add(root, false);
}

// What came from a remote store lies beside one's own, in a folder for each policy that believed it.
std::vector<std::string> fetched_folders(const Config& config) {
  std::vector<std::string> folders;
  if (config.cache_path.empty()) return folders;
  for (const std::string& name : list_directory(AT_FDCWD, config.cache_path.front().c_str())) {
    const std::string folder = name.substr(name.rfind('/') + 1);
    if (folder.starts_with(kFetched)) folders.push_back(join_path(config.cache_path.front(), folder));
  }
  return folders;
}

Result<Collected> collect_garbage(DiskStore& store) {
  const std::string folder = store.root().substr(store.root().rfind('/') + 1);
  if (!folder.starts_with(kFetched)) return store.gc();
  // A policy that nobody has any more leaves its folder behind.
  const auto stats = store.stats();
  if (stats && stats->entries > 0 && system_clock().wall() - stats->newest > kUnusedPolicy) return store.clear();
  return store.gc();
}

std::vector<DiskStore*> Caches::writable() const {
  std::vector<DiskStore*> stores;
  for (const auto& store : stores_) {
    if (store->writable()) stores.push_back(store.get());
  }
  return stores;
}

}  // namespace kiln::cli
