#include "base/read_index.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

namespace kiln {
namespace {

struct Item {
  std::size_t number = 0;
};

Item* find(const ReadIndex<Item>& index, std::size_t hash, std::size_t number) {
  return index.find(hash, [&](const Item& item) { return item.number == number; });
}

TEST(ReadIndex, FindsWhatWasPutAndNothingElse) {
  ReadIndex<Item> index;
  std::deque<Item> items;
  for (std::size_t i = 0; i < 1000; ++i) {
    items.push_back({i});
    index.insert(i * 7919, items.back());
  }
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(find(index, i * 7919, i), &items[i]);
  EXPECT_EQ(find(index, 7919, 2), nullptr) << "the hash of another";
  EXPECT_EQ(find(index, 12345, 1), nullptr);
}

TEST(ReadIndex, KeepsItemsOfOneHashApart) {
  ReadIndex<Item> index;
  std::deque<Item> items;
  for (std::size_t i = 0; i < 100; ++i) {
    items.push_back({i});
    index.insert(42, items.back());
  }
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(find(index, 42, i), &items[i]);
}

TEST(ReadIndex, GoesThroughAllThatIsThere) {
  ReadIndex<Item> index;
  std::deque<Item> items;
  std::size_t sum = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    items.push_back({i});
    index.insert(i, items.back());
  }
  index.for_each([&](const Item& item) { sum += item.number; });
  EXPECT_EQ(sum, 199U * 200 / 2);
}

// What was put before a reader began to look is found by it, however often the table grows meanwhile.
TEST(ReadIndex, IsReadWhileItGrows) {
  ReadIndex<Item> index;
  std::deque<Item> items;
  std::atomic<std::size_t> put{0};
  std::atomic<std::size_t> lost{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      for (std::size_t there = 0; there < 20000; there = put.load(std::memory_order_acquire)) {
        for (std::size_t n = there; n > 0 && n + 50 > there; --n) {
          if (find(index, (n - 1) * 31, n - 1) == nullptr) ++lost;
        }
      }
    });
  }
  for (std::size_t i = 0; i < 20000; ++i) {
    items.push_back({i});
    index.insert(i * 31, items.back());
    put.store(i + 1, std::memory_order_release);
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(lost, 0U);
}

}  // namespace
}  // namespace kiln
