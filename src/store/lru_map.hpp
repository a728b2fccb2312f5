#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <utility>

namespace kiln {

/// A map that forgets what was used longest ago when its values weigh more than a bound. Not thread-safe.
template <class K, class V>
class LruMap {
 public:
  explicit LruMap(std::uint64_t bound) : bound_(bound) {}

  /// The value, now the most recently used; null where there is none.
  V* find(const K& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    items_.splice(items_.begin(), items_, found->second);
    return &found->second->value;
  }

  /// Puts a value that weighs `bytes` in place of any there was. One that alone is over the bound is not kept.
  void put(const K& key, V value, std::uint64_t bytes) {
    erase(key);
    if (bytes > bound_) return;
    items_.push_front({key, std::move(value), bytes});
    places_[key] = items_.begin();
    bytes_ += bytes;
    while (bytes_ > bound_) erase(K(items_.back().key));
  }

  void erase(const K& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return;
    bytes_ -= found->second->bytes;
    items_.erase(found->second);
    places_.erase(found);
  }

  std::uint64_t bytes() const { return bytes_; }
  std::size_t size() const { return places_.size(); }

 private:
  struct Item {
    K key;
    V value;
    std::uint64_t bytes;
  };
  const std::uint64_t bound_;
  std::uint64_t bytes_ = 0;
  std::list<Item> items_;  // the most recently used first
  std::unordered_map<K, typename std::list<Item>::iterator> places_;
};

}  // namespace kiln
