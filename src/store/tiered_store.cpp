#include "store/tiered_store.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace kiln {

TieredStore::TieredStore(std::vector<Tier> tiers, Observer observer)
    : tiers_(std::move(tiers)), observer_(std::move(observer)), told_(tiers_.size()) {}

void TieredStore::tell(std::size_t tier, const Error& error) {
  if (!observer_) return;
  {
    const MutexLock lock(mutex_);
    if (told_[tier] == error.message) return;
    told_[tier] = error.message;
  }
  observer_.tell(Event::Kind::CacheUnavailable, tiers_[tier].store->describe(), error.message);
}

bool TieredStore::copies_into(std::size_t tier, std::size_t found_in) const {
  return tiers_[tier].takes_copies && tiers_[tier].distance < tiers_[found_in].distance &&
         tiers_[tier].store->writable();
}

void TieredStore::keep_nearer(std::size_t found_in, const Key& key, const Artifact& artifact) {
  for (std::size_t i = 0; i < found_in; ++i) {
    if (!copies_into(i, found_in)) continue;
    if (const Status kept = tiers_[i].store->put(key, artifact); !kept) tell(i, kept.error());
  }
}

Result<std::optional<Hit>> TieredStore::get(const Key& key) {
  return first([&](Store& store) { return store.get(key); }, key);
}

Result<std::optional<Hit>> TieredStore::get_instead(const Key& key, const Bytes& refused) {
  return first([&](Store& store) { return store.get_instead(key, refused); }, key);
}

template <class Ask>
Result<std::optional<Hit>> TieredStore::first(Ask ask, const Key& key) {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    Result<std::optional<Hit>> hit = ask(*tiers_[i].store);
    if (!hit) {
      tell(i, hit.error());
    } else if (*hit) {
      keep_nearer(i, key, (*hit)->artifact);
      return hit;
    }
  }
  return std::optional<Hit>();
}

template <class Write>
Status TieredStore::write_all_tiers(Write write) {
  Status result = failure(Code::Unavailable, "no store can be written");
  bool took = false;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (!tiers_[i].takes_puts || !tiers_[i].store->writable()) continue;
    Status written = write(*tiers_[i].store);
    if (!written) tell(i, written.error());
    if (!took) result = std::move(written);
    took |= result.ok();
  }
  return result;
}

Status TieredStore::put(const Key& key, const Artifact& artifact) {
  return write_all_tiers([&](Store& store) { return store.put(key, artifact); });
}

Status TieredStore::add_closure(const RequestKey& request, const Closure& closure) {
  return write_all_tiers([&](Store& store) { return store.add_closure(request, closure); });
}

Result<std::vector<Closure>> TieredStore::closures(const RequestKey& request, std::size_t limit) {
  std::vector<Closure> merged;
  std::vector<std::size_t> empty;  // the stores so far that had none
  for (std::size_t i = 0; i < tiers_.size() && merged.size() < limit; ++i) {
    auto found = tiers_[i].store->closures(request, limit);
    if (!found) {
      tell(i, found.error());
      continue;
    }
    if (found->empty()) {
      empty.push_back(i);
      continue;
    }
    for (const std::size_t earlier : empty) keep_nearer(earlier, i, request, *found);
    for (Closure& closure : *found) {
      if (merged.size() == limit) break;
      if (std::find(merged.begin(), merged.end(), closure) == merged.end()) merged.push_back(std::move(closure));
    }
  }
  return merged;
}

void TieredStore::keep_nearer(std::size_t tier, std::size_t found_in, const RequestKey& request,
                              const std::vector<Closure>& closures) {
  if (!copies_into(tier, found_in)) return;
  // The newest is added last, so that it comes first there too.
  for (auto closure = closures.rbegin(); closure != closures.rend(); ++closure) {
    if (const Status kept = tiers_[tier].store->add_closure(request, *closure); !kept) tell(tier, kept.error());
  }
}

bool TieredStore::writable() {
  return std::any_of(tiers_.begin(), tiers_.end(), [](const Tier& tier) { return tier.store->writable(); });
}

std::string TieredStore::describe() const {
  std::string text;
  for (const Tier& tier : tiers_) text += (text.empty() ? "" : ", ") + tier.store->describe();
  return text;
}

}  // namespace kiln
