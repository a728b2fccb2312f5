// SPDX-License-Identifier: Apache-2.0
#include "base/concurrent_index.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <vector>

namespace kiln {
namespace {

struct Item {
  std::size_t number = 0;
};

// Many keys share a digest, as the kernels of one unit do, and many share a slot in the table.
IndexKey key_of(std::size_t number) {
  Digest digest;
  digest.bytes[0] = static_cast<std::uint8_t>(number % 7);
  return {digest, "item " + std::to_string(number)};
}

void put(ConcurrentIndex<Item>& index, std::size_t size, Item& item) {
  index.reserve(size);
  index.put(key_of(item.number), item);
}

TEST(ConcurrentIndex, FindsOnlyInsertedKeys) {
  ConcurrentIndex<Item> index;
  std::deque<Item> items;
  for (std::size_t i = 0; i < 1000; ++i) {
    items.push_back({i});
    put(index, i + 1, items.back());
  }
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(index.find(key_of(i)), &items[i]);
  EXPECT_EQ(index.find(key_of(1000)), nullptr);
  EXPECT_EQ(index.find({Digest(), "item 1", 1}), nullptr) << "another form";
}

TEST(ConcurrentIndex, PutReplacesItem) {
  ConcurrentIndex<Item> index;
  Item first{1};
  Item second{1};
  put(index, 1, first);
  put(index, 1, second);
  EXPECT_EQ(index.find(key_of(1)), &second);
  index.erase(key_of(1));
  EXPECT_EQ(index.find(key_of(1)), nullptr);
}

TEST(ConcurrentIndex, EraseKeepsOthersAndFreesSlots) {
  constexpr std::size_t kKept = 500;
  ConcurrentIndex<Item> index;
  std::deque<Item> items;
  index.reserve(kKept + 1);
  // Inserts and erases far more entries than the table can hold at once.
  for (std::size_t i = 0; i < 50'000; ++i) {
    items.push_back({i});
    index.put(key_of(i), items.back());
    if (i >= kKept) index.erase(key_of(i - kKept));
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(index.find(key_of(i)), i + kKept >= items.size() ? &items[i] : nullptr);
  }
  index.erase(key_of(0));
  index.hide();
  EXPECT_EQ(index.find(key_of(items.size() - 1)), nullptr);
}

// A reader finds every entry that was put before it started, however often the table grows.
TEST(ConcurrentIndex, FindWorksDuringGrowth) {
  ConcurrentIndex<Item> index;
  std::deque<Item> items;
  std::atomic<std::size_t> count{0};
  std::atomic<std::size_t> lost{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      for (std::size_t there = 0; there < 20000; there = count.load(std::memory_order_acquire)) {
        for (std::size_t n = there; n > 0 && n + 50 > there; --n) {
          if (index.find(key_of(n - 1)) == nullptr) ++lost;
        }
      }
    });
  }
  for (std::size_t i = 0; i < 20000; ++i) {
    items.push_back({i});
    put(index, i + 1, items.back());
    count.store(i + 1, std::memory_order_release);
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(lost, 0U);
}

TEST(ConcurrentIndex, FindWorksDuringErase) {
  constexpr std::size_t kItems = 64;
  ConcurrentIndex<Item> index;
  std::deque<Item> items;
  for (std::size_t i = 0; i < kItems; ++i) items.push_back({i});
  index.reserve(kItems);
  std::atomic<bool> done{false};
  std::atomic<std::size_t> wrong{0};
  std::atomic<std::size_t> found{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        for (std::size_t n = 0; n < kItems; ++n) {
          const Item* item = index.find(key_of(n));
          if (item == nullptr) continue;
          ++found;
          if (item->number != n) ++wrong;
        }
      }
    });
  }
  for (std::size_t round = 0; round < 20'000 || found < 1000; ++round) {
    const std::size_t n = round * 37 % kItems;
    if (round / kItems % 2 == 0) {
      index.put(key_of(n), items[n]);
    } else {
      index.erase(key_of(n));
    }
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace kiln
