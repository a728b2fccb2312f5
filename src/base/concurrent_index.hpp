// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <kiln/key.hpp>

#include "base/hash.hpp"

namespace kiln {

/// The key of a `ConcurrentIndex` entry: a digest and the 128-bit hash of an additional text. The hash distinguishes
/// the few texts that share a digest (the targets or the entry points of one unit). It does not resist an attacker.
struct IndexKey {
  IndexKey() = default;
  IndexKey(const Digest& digest, std::string_view text, std::uint64_t more = 0) {
    std::memcpy(words.data(), digest.bytes.data(), digest.bytes.size());
    const Hash128 hash = xxh3_128(as_bytes(text));
    words[4] = hash.low;
    words[5] = hash.high + more;
  }
  std::size_t hash() const { return words[0] ^ words[4]; }

  std::array<std::uint64_t, 6> words{};
};

/// A hash index of pointers with lock-free readers. The owner serializes the writers and keeps the items alive. Entries
/// are stored in the table, each with a version that is odd while a writer changes the entry, so a reader never returns
/// the pointer of another key. A reader that meets a change returns null: null means "missing, or look up under the
/// owner's lock". Entries can be removed. Outgrown tables are kept for readers that may still use them; together they
/// are no larger than the table in use.
template <class Item>
class ConcurrentIndex {
 public:
  ConcurrentIndex() {
    tables_.push_back(std::make_unique<Table>(kMinBytes));
    table_.store(tables_.back().get(), std::memory_order_release);
  }
  ConcurrentIndex(const ConcurrentIndex&) = delete;
  ConcurrentIndex& operator=(const ConcurrentIndex&) = delete;

  /// Returns the item of a key or null. Thread-safe.
  Item* find(const IndexKey& key) const noexcept {
    const Table& table = *table_.load(std::memory_order_acquire);
    std::size_t at = key.hash() & table.mask;
    for (std::size_t looks = 0; looks <= table.mask; ++looks, at = (at + 1) & table.mask) {
      const Slot& slot = table.slots[at];
      const std::uint64_t version = slot.version.load(std::memory_order_acquire);
      // Each load acquires, so that none of them moves behind the second load of the version.
      Item* const item = slot.item.load(std::memory_order_acquire);
      if (item == nullptr || version % 2 != 0) return nullptr;
      if (!slot.is(key)) continue;
      return slot.version.load(std::memory_order_relaxed) == version ? item : nullptr;
    }
    return nullptr;
  }

  // The following functions are not thread-safe.

  /// Reserves capacity for `count` entries in total, so that `put` does not allocate up to then.
  void reserve(std::size_t count) {
    Table* const table = tables_.back().get();
    if (2 * count <= table->mask + 1) return;
    auto larger = std::make_unique<Table>(std::max(2 * (table->mask + 1), std::size_t{kMinBytes}));
    while (2 * count > larger->mask + 1) larger = std::make_unique<Table>(2 * (larger->mask + 1));
    for (const Slot& slot : table->slots) {
      Item* const item = slot.item.load(std::memory_order_relaxed);
      if (item != nullptr) larger->slots[larger->slot_of(slot.key())].write(slot.key(), item);
    }
    tables_.push_back(std::move(larger));
    table_.store(tables_.back().get(), std::memory_order_release);
  }
  /// Adds or replaces an entry. The capacity must be reserved.
  void put(const IndexKey& key, Item& item) noexcept {
    Table& table = *tables_.back();
    table.slots[table.slot_of(key)].write(key, &item);
  }
  void erase(const IndexKey& key) noexcept {
    Table& table = *tables_.back();
    std::size_t hole = table.slot_of(key);
    if (table.slots[hole].item.load(std::memory_order_relaxed) == nullptr) return;
    // Moves each following entry that can fill the hole, so that no probe ends too soon.
    for (std::size_t at = (hole + 1) & table.mask;; at = (at + 1) & table.mask) {
      Item* const item = table.slots[at].item.load(std::memory_order_relaxed);
      if (item == nullptr) break;
      const IndexKey moved = table.slots[at].key();
      const std::size_t distance = (at - moved.hash()) & table.mask;
      if (distance < ((at - hole) & table.mask)) continue;
      table.slots[hole].write(moved, item);
      hole = at;
    }
    table.slots[hole].write(key, nullptr);
  }

  /// Makes every later lookup return null. Takes no lock and allocates nothing, for use in the child of a fork.
  void hide() noexcept { table_.store(&nothing_, std::memory_order_release); }

 private:
  static constexpr std::size_t kMinBytes = 64;

  // One cache line.
  struct alignas(64) Slot {
    bool is(const IndexKey& key) const {
      for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i].load(std::memory_order_acquire) != key.words[i]) return false;
      }
      return true;
    }
    // For writers only.
    IndexKey key() const {
      IndexKey key;
      for (std::size_t i = 0; i < words.size(); ++i) key.words[i] = words[i].load(std::memory_order_relaxed);
      return key;
    }
    void write(const IndexKey& key, Item* to) {
      const std::uint64_t before = version.load(std::memory_order_relaxed);
      version.store(before + 1, std::memory_order_relaxed);
      // Each store releases, so that a reader that sees it sees the odd version too.
      for (std::size_t i = 0; i < words.size(); ++i) words[i].store(key.words[i], std::memory_order_release);
      item.store(to, std::memory_order_release);
      version.store(before + 2, std::memory_order_release);
    }
    std::atomic<std::uint64_t> version{0};
    std::array<std::atomic<std::uint64_t>, 6> words{};
    std::atomic<Item*> item{nullptr};
  };
  // Open addressing with a power-of-two number of slots, at most half of them used, so that probes are short.
  struct Table {
    explicit Table(std::size_t count) : mask(count - 1), slots(count) {}
    // Returns the slot of the key, or the free slot for it.
    std::size_t slot_of(const IndexKey& key) const {
      std::size_t at = key.hash() & mask;
      while (slots[at].item.load(std::memory_order_relaxed) != nullptr && !slots[at].is(key)) at = (at + 1) & mask;
      return at;
    }
    const std::size_t mask;
    std::vector<Slot> slots;
  };

  const Table nothing_{1};
  std::atomic<const Table*> table_;
  std::vector<std::unique_ptr<Table>> tables_;  // the last one is in use
};

}  // namespace kiln
