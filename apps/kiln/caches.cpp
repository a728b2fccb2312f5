#include "apps/kiln/caches.hpp"

#include "base/clock.hpp"

namespace kiln::cli {

std::string ago(std::chrono::nanoseconds moment) {
  return age_text(std::chrono::duration_cast<std::chrono::seconds>(system_clock().wall() - moment));
}

Caches::Caches(Console& console, std::optional<std::uint64_t> bound) {
  const Observer observer(console.listener());
  const Config config = Config::load({}, observer);
  bool first = true;
  for (const std::string& root : config.cache_path) {
    DiskStore::Options options;
    options.root = root;
    options.size_bound = bound.value_or(config.cache_max_bytes);
    options.read_only = !std::exchange(first, false);
    options.trusted_owners.assign(config.cache_trusted_users.begin(), config.cache_trusted_users.end());
    Result<std::unique_ptr<DiskStore>> store = DiskStore::open(std::move(options), observer);
    if (store) {
      stores_.push_back(std::move(*store));
    } else {
      console.warn(store.error().message);
    }
  }
}

std::vector<DiskStore*> Caches::writable() const {
  std::vector<DiskStore*> stores;
  for (const auto& store : stores_) {
    if (store->writable()) stores.push_back(store.get());
  }
  return stores;
}

}  // namespace kiln::cli
