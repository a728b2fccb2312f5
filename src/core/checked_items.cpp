#include "core/checked_items.hpp"

#include <cstring>

#include "base/asked_at.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

// Small enough that two threads which begin together share a closure of CUB's (700 items), large enough that the lock
// is taken seldom.
constexpr std::size_t kBatch = 32;
constexpr std::size_t kMostItems = std::size_t{1} << 16;

// A digest is as good a hash as any; what has none is told apart by its name.
std::uint64_t hash_of(const Closure::Item& item) {
  std::uint64_t hash = 0;
  std::memcpy(&hash, item.digest.bytes.data(), sizeof hash);
  return hash != 0 ? hash + item.name.size() : xxh3(as_bytes(item.name));
}

}  // namespace

std::uint32_t CheckedItems::number_of(const Places& places, bool timed) {
  std::string text = timed ? "timed" : "";
  text.append(1, '\0').append(places.working_directory);
  for (const IncludeRoot& root : places.roots) text.append(1, '\0').append(root.path);
  const auto [known, added] = places_.emplace(std::move(text), numbers_);
  if (added) ++numbers_;
  return known->second;
}

CheckedItems::Known& CheckedItems::known(const Question& question) {
  const std::uint64_t hash = hash_of(*question.item);
  for (auto at = items_.find(hash); at != items_.end() && at->first == hash; ++at) {
    if (at->second.places == question.places && at->second.item == *question.item) return at->second;
  }
  return items_.emplace(hash, Known{*question.item, question.places, {}, false})->second;
}

bool CheckedItems::holds(const Known& known, std::chrono::nanoseconds now) const {
  return known.at.count() != 0 && known.at >= *AskedAt::time() && now - known.at <= kHolds;
}

CheckedItems::Numbers CheckedItems::take(const Closure& closure, std::uint32_t places, std::size_t& next,
                                         Numbers& taken_by_others) {
  const auto now = clock_.steady();
  Numbers mine;
  const MutexLock lock(mutex_);
  for (; next < closure.items.size() && mine.size() < kBatch; ++next) {
    Known& item = known({places, &closure.items[next]});
    if (holds(item, now)) continue;
    (item.taken ? taken_by_others : mine).push_back(static_cast<std::uint32_t>(next));
    item.taken = true;
  }
  return mine;
}

void CheckedItems::give_back(const Closure& closure, std::uint32_t places, const Numbers& items,
                             std::optional<std::chrono::nanoseconds> found_right) {
  const MutexLock lock(mutex_);
  for (const std::uint32_t number : items) {
    Known& item = known({places, &closure.items[number]});
    item.taken = false;
    if (found_right) item.at = *found_right;
  }
  if (found_right) newest_ = std::max(newest_, *found_right);
}

std::optional<Mismatch> CheckedItems::check(const Closure& closure, const Places& places, FileDigests& digests) {
  if (!AskedAt::time()) return kiln::check(closure, places, digests);
  std::uint32_t number = 0;
  {
    const MutexLock lock(mutex_);
    if (clock_.steady() - newest_ > kHolds || items_.size() > kMostItems) {
      items_.clear();
      items_.reserve(2 * closure.items.size());
      places_.clear();
    }
    number = number_of(places, closure.timed);
  }
  const auto look_at = [&](const Numbers& items) {
    const auto before = clock_.steady();
    auto mismatch = check_items(closure, items, places, digests);
    give_back(closure, number, items, mismatch ? std::nullopt : std::optional(before));
    return mismatch;
  };
  Numbers taken_by_others;
  for (std::size_t next = 0; next < closure.items.size();) {
    const Numbers mine = take(closure, number, next, taken_by_others);
    if (auto mismatch = look_at(mine)) return mismatch;
  }
  // They are done by now, nearly always. Whoever is not is not waited for.
  Numbers still;
  {
    const auto now = clock_.steady();
    const MutexLock lock(mutex_);
    for (const std::uint32_t item : taken_by_others) {
      if (!holds(known({number, &closure.items[item]}), now)) still.push_back(item);
    }
  }
  if (auto mismatch = look_at(still)) return mismatch;
  return check_bonds(closure, places);
}

}  // namespace kiln
