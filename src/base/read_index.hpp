#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace kiln {

/// Finds items by their hash. Readers take no lock; writers are kept apart by whoever owns it. Nothing is ever removed,
/// and a table that was outgrown is kept for those who may still be reading it: no more than is in use.
/// The items are the owner's and must outlive it.
template <class Item>
class ReadIndex {
 public:
  ReadIndex() {
    tables_.push_back(std::make_unique<Table>(64));
    table_.store(tables_.back().get(), std::memory_order_release);
  }
  ReadIndex(const ReadIndex&) = delete;
  ReadIndex& operator=(const ReadIndex&) = delete;

  /// The item with this hash of which `is_it` says so; null where there is none. Any thread, any time.
  template <class Predicate>
  Item* find(std::size_t hash, const Predicate& is_it) const {
    const Table& table = *table_.load(std::memory_order_acquire);
    for (std::size_t at = hash & table.mask;; at = (at + 1) & table.mask) {
      const Place& place = table.places[at];
      Item* const item = place.item.load(std::memory_order_acquire);
      if (item == nullptr || (place.hash == hash && is_it(*item))) return item;
    }
  }

  /// All that were there when it was called. Any thread, any time.
  template <class Function>
  void for_each(const Function& function) const {
    for (const Place& place : table_.load(std::memory_order_acquire)->places) {
      if (Item* item = place.item.load(std::memory_order_acquire)) function(*item);
    }
  }

  /// One thread at a time.
  void insert(std::size_t hash, Item& item) {
    Table* table = tables_.back().get();
    if (2 * (size_ + 1) > table->mask + 1) {
      auto larger = std::make_unique<Table>(2 * (table->mask + 1));
      for (const Place& place : table->places) {
        if (Item* known = place.item.load(std::memory_order_relaxed)) larger->put(place.hash, *known);
      }
      tables_.push_back(std::move(larger));
      table = tables_.back().get();
      table_.store(table, std::memory_order_release);
    }
    table->put(hash, item);
    ++size_;
  }

 private:
  struct Place {
    std::atomic<Item*> item{nullptr};
    std::size_t hash = 0;  // written before the item is
  };
  // Open addressing with a power of two of places, never more than half of them taken: a probe ends soon.
  struct Table {
    explicit Table(std::size_t count) : mask(count - 1), places(count) {}
    void put(std::size_t hash, Item& item) {
      std::size_t at = hash & mask;
      while (places[at].item.load(std::memory_order_relaxed) != nullptr) at = (at + 1) & mask;
      places[at].hash = hash;
      places[at].item.store(&item, std::memory_order_release);
    }
    const std::size_t mask;
    std::vector<Place> places;
  };

  std::atomic<const Table*> table_;
  std::vector<std::unique_ptr<Table>> tables_;  // the last is in use
  std::size_t size_ = 0;
};

}  // namespace kiln
