// SPDX-License-Identifier: Apache-2.0
#include "core/dependency_check_cache.hpp"

#include <cstring>

#include "base/hash.hpp"

namespace kiln {
namespace {

// Small enough that two threads that start together share the dependencies of a CUB unit (700 items), large enough that
// the lock is taken rarely.
constexpr std::size_t kBatch = 32;
constexpr std::size_t kMaxItems = std::size_t{1} << 16;

// Uses the digest as the hash; items without a digest are hashed by name.
std::uint64_t hash_of(const DependencySet::Dependency& item) {
  std::uint64_t hash = 0;
  std::memcpy(&hash, item.digest.bytes.data(), sizeof hash);
  return hash != 0 ? hash + item.name.size() : xxh3(as_bytes(item.name));
}

}  // namespace

std::uint32_t DependencyCheckCache::roots_id(const PathRoots& places, bool timed) {
  std::string text = timed ? "timed" : "";
  text.append(1, '\0').append(places.working_directory);
  for (const IncludeRoot& root : places.roots) text.append(1, '\0').append(root.path);
  const auto [known, added] = places_.emplace(std::move(text), numbers_);
  if (added) ++numbers_;
  return known->second;
}

DependencyCheckCache::CheckedDependency& DependencyCheckCache::known(const DependencyQuery& question) {
  const std::uint64_t hash = hash_of(*question.item);
  for (auto at = items_.find(hash); at != items_.end() && at->first == hash; ++at) {
    if (at->second.places == question.places && at->second.item == *question.item) return at->second;
  }
  return items_.emplace(hash, CheckedDependency{*question.item, question.places, {}, false})->second;
}

bool DependencyCheckCache::is_fresh(const CheckedDependency& known, std::chrono::nanoseconds requested_at,
                                    std::chrono::nanoseconds now) {
  return known.at.count() != 0 && known.at >= requested_at && now - known.at <= kMaxAge;
}

DependencyCheckCache::Numbers DependencyCheckCache::claim_unchecked(const DependencySet& dependency_set,
                                                                    std::uint32_t places, std::size_t& next,
                                                                    std::chrono::nanoseconds requested_at,
                                                                    Numbers& taken_by_others) {
  const auto now = clock_.steady();
  Numbers mine;
  const MutexLock lock(mutex_);
  for (; next < dependency_set.items.size() && mine.size() < kBatch; ++next) {
    CheckedDependency& item = known({places, &dependency_set.items[next]});
    if (is_fresh(item, requested_at, now)) continue;
    (item.taken ? taken_by_others : mine).push_back(static_cast<std::uint32_t>(next));
    item.taken = true;
  }
  return mine;
}

void DependencyCheckCache::release(const DependencySet& dependency_set, std::uint32_t places, const Numbers& items,
                                   std::optional<std::chrono::nanoseconds> found_right) {
  const MutexLock lock(mutex_);
  for (const std::uint32_t number : items) {
    CheckedDependency& item = known({places, &dependency_set.items[number]});
    item.taken = false;
    if (found_right) item.at = *found_right;
  }
  if (found_right) newest_ = std::max(newest_, *found_right);
}

std::optional<Mismatch> DependencyCheckCache::check(const DependencySet& dependency_set, const PathRoots& places,
                                                    FileDigestCache& digests,
                                                    std::optional<std::chrono::nanoseconds> requested_at) {
  if (!requested_at) return kiln::check(dependency_set, places, digests);
  std::uint32_t number = 0;
  {
    const MutexLock lock(mutex_);
    if (clock_.steady() - newest_ > kMaxAge || items_.size() > kMaxItems) {
      items_.clear();
      items_.reserve(2 * dependency_set.items.size());
      places_.clear();
    }
    number = roots_id(places, dependency_set.embeds_mtimes);
  }
  const auto look_at = [&](const Numbers& items) {
    const auto before = clock_.steady();
    auto mismatch = check_dependencies(dependency_set, items, places, digests, requested_at);
    release(dependency_set, number, items, mismatch ? std::nullopt : std::optional(before));
    return mismatch;
  };
  Numbers taken_by_others;
  for (std::size_t next = 0; next < dependency_set.items.size();) {
    const Numbers mine = claim_unchecked(dependency_set, number, next, *requested_at, taken_by_others);
    if (auto mismatch = look_at(mine)) return mismatch;
  }
  // The other threads have nearly always finished by now. This thread checks the rest itself and does not wait.
  Numbers still;
  {
    const auto now = clock_.steady();
    const MutexLock lock(mutex_);
    for (const std::uint32_t item : taken_by_others) {
      if (!is_fresh(known({number, &dependency_set.items[item]}), *requested_at, now)) still.push_back(item);
    }
  }
  if (auto mismatch = look_at(still)) return mismatch;
  return check_relations(dependency_set, places);
}

}  // namespace kiln
