// SPDX-License-Identifier: Apache-2.0
#include "backends/cccl/temp_storage.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace kiln::test {
namespace {

void* address(std::uintptr_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr): it is never dereferenced
}

/// Memory that is only counted. It also controls which streams are capturing and which call fails next.
class CountedMemory final : public StreamAllocator {
 public:
  Result<void*> allocate(std::size_t bytes, const StorageStream& stream) override {
    const MutexLock lock(mutex_);
    ++allocations_;
    if (recording_.count(stream.native) != 0) ++mistakes_;
    if (fail_allocation_) return make_error(Code::Unavailable, "no memory");
    void* const made = address(next_ += 16);
    live_[made] = {bytes, stream.native};
    return made;
  }
  Status release(void* memory, std::size_t bytes, const StorageStream& stream) override {
    std::function<void()> hook;
    {
      const MutexLock lock(mutex_);
      hook = std::exchange(during_release_, nullptr);
    }
    if (hook) hook();
    const MutexLock lock(mutex_);
    const auto found = live_.find(memory);
    if (found == live_.end() || found->second != std::pair{bytes, stream.native}) ++mistakes_;
    if (fail_release_) return make_error(Code::Internal, "cannot release");
    if (found != live_.end()) live_.erase(found);
    return {};
  }
  Result<bool> capturing(const StorageStream& stream) override {
    const MutexLock lock(mutex_);
    return recording_.count(stream.native) != 0;
  }

  void record(void* stream, bool on) {
    const MutexLock lock(mutex_);
    if (on) {
      recording_.insert(stream);
    } else {
      recording_.erase(stream);
    }
  }
  void fail_allocation(bool on) {
    const MutexLock lock(mutex_);
    fail_allocation_ = on;
  }
  void fail_release(bool on) {
    const MutexLock lock(mutex_);
    fail_release_ = on;
  }
  /// Calls a function once, during the next release.
  void call_during_release(std::function<void()> hook) {
    const MutexLock lock(mutex_);
    during_release_ = std::move(hook);
  }
  bool has(void* memory) const {
    const MutexLock lock(mutex_);
    return live_.count(memory) != 0;
  }
  std::size_t live() const {
    const MutexLock lock(mutex_);
    return live_.size();
  }
  int allocations() const {
    const MutexLock lock(mutex_);
    return allocations_;
  }
  /// Counts releases of unknown blocks or on another stream, and allocations on a capturing stream.
  int mistakes() const {
    const MutexLock lock(mutex_);
    return mistakes_;
  }

 private:
  mutable Mutex mutex_;
  std::map<void*, std::pair<std::size_t, void*>> live_ KILN_GUARDED_BY(mutex_);
  std::set<void*> recording_ KILN_GUARDED_BY(mutex_);
  std::function<void()> during_release_ KILN_GUARDED_BY(mutex_);
  std::uintptr_t next_ KILN_GUARDED_BY(mutex_) = 4096;
  bool fail_allocation_ KILN_GUARDED_BY(mutex_) = false;
  bool fail_release_ KILN_GUARDED_BY(mutex_) = false;
  int allocations_ KILN_GUARDED_BY(mutex_) = 0;
  int mistakes_ KILN_GUARDED_BY(mutex_) = 0;
};

using Size = TempStorage::Size;

/// A storage size as the library's: in steps, and dependent on two numbers.
std::size_t need(const Size& size) { return 1 + (size.items / 512 + size.others / 16) * 256; }

class TempStorageTest : public testing::Test {
 protected:
  /// Returns the block that a call of this size runs with.
  Result<TempStorage::Block> take(void* stream, Size size, const TempStorage::Query& query) {
    TempStorage::Block got;
    const Status used = storage_->use(stream, size, query, [&](const TempStorage::Block& piece) {
      got = piece;
      return Status();
    });
    if (!used) return used.error();
    return got;
  }
  Result<TempStorage::Block> take(void* stream, Size size) { return take(stream, size, query_); }

  const std::shared_ptr<CountedMemory> memory_ = std::make_shared<CountedMemory>();
  int queries_ = 0;
  const TempStorage::Query query_ = [this](const Size& size) -> Result<std::size_t> {
    ++queries_;
    return need(size);
  };
  std::unique_ptr<TempStorage> storage_ = std::make_unique<TempStorage>(memory_);
  void* const stream_ = address(64);
};

TEST_F(TempStorageTest, ExpectedSizeIsNotQueriedAgain) {
  ASSERT_TRUE(storage_->prefetch_size({128, 128}, query_).has_value());
  EXPECT_EQ(queries_, 1);
  EXPECT_EQ(memory_->allocations(), 0);
  ASSERT_TRUE(take(stream_, {100, 1}).has_value());
  EXPECT_EQ(queries_, 1);
  ASSERT_TRUE(take(stream_, {100000, 1}).has_value());
  EXPECT_EQ(queries_, 2);
  ASSERT_TRUE(take(stream_, {100000, 128}).has_value());
  EXPECT_EQ(queries_, 2) << "the maximum of both was queried";
}

TEST_F(TempStorageTest, ZeroBytesStillAllocate) {
  const auto piece = take(stream_, {0, 0}, [](const Size&) -> Result<std::size_t> { return std::size_t{0}; });
  ASSERT_TRUE(piece.has_value());
  EXPECT_NE(piece->memory, nullptr) << "the library treats null as a query";
}

TEST_F(TempStorageTest, CapturingStreamUsesExistingBlockOrGetsError) {
  memory_->record(stream_, true);
  const auto none = take(stream_, {1000, 0});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::Capturing);
  EXPECT_NE(none.error().message.find("reserve"), std::string::npos);
  memory_->record(stream_, false);
  const auto before = take(stream_, {1000, 0});
  ASSERT_TRUE(before.has_value());
  memory_->record(stream_, true);
  const auto recorded = take(stream_, {900, 0});
  ASSERT_TRUE(recorded.has_value());
  EXPECT_EQ(recorded->memory, before->memory);
  EXPECT_FALSE(take(stream_, {100000, 0}).has_value());
  memory_->record(stream_, false);
  const auto larger = take(stream_, {100000, 0});
  ASSERT_TRUE(larger.has_value());
  EXPECT_NE(larger->memory, recorded->memory);
  EXPECT_TRUE(memory_->has(recorded->memory)) << "the graph uses the block";
  const Status released = storage_->release(stream_);
  ASSERT_FALSE(released.has_value());
  EXPECT_EQ(released.error().code, Code::InvalidArgument);
  storage_.reset();
  EXPECT_EQ(memory_->live(), 0U);
}

TEST_F(TempStorageTest, FailedGrowthKeepsExistingBlock) {
  const auto small = take(stream_, {1000, 0});
  ASSERT_TRUE(small.has_value());
  memory_->fail_allocation(true);
  EXPECT_FALSE(take(stream_, {1000000, 0}).has_value());
  const auto again = take(stream_, {1000, 0});
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->memory, small->memory);
}

TEST_F(TempStorageTest, FailedQueryIsErrorOfCallAndChangesNothing) {
  const auto small = take(stream_, {1000, 0});
  ASSERT_TRUE(small.has_value());
  const auto failed = take(stream_, {5000, 0},
                           [](const Size&) -> Result<std::size_t> { return make_error(Code::Internal, "no answer"); });
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().message, "no answer");
  EXPECT_EQ(take(stream_, {1000, 0})->memory, small->memory);
}

TEST_F(TempStorageTest, ReleaseFreesBlockOfStream) {
  ASSERT_TRUE(take(stream_, {1000, 0}).has_value());
  ASSERT_TRUE(take(address(128), {1000, 0}).has_value());
  EXPECT_EQ(memory_->live(), 2U);
  EXPECT_TRUE(storage_->release(stream_).has_value());
  EXPECT_TRUE(storage_->release(stream_).has_value()) << "a second release has no effect";
  EXPECT_EQ(memory_->live(), 1U);
}

TEST_F(TempStorageTest, StreamsOfOneHandleAreSeparatedByContext) {
  const auto in_context = [&](std::uint64_t context) {
    TempStorage::Block got;
    EXPECT_TRUE(storage_
                    ->use({stream_, context}, {1000, 0}, query_,
                          [&](const TempStorage::Block& piece) {
                            got = piece;
                            return Status();
                          })
                    .has_value());
    return got.memory;
  };
  void* const first = in_context(1);
  EXPECT_NE(in_context(2), first);
  EXPECT_EQ(in_context(1), first);
  EXPECT_TRUE(storage_->release({stream_, 1}).has_value());
  EXPECT_EQ(memory_->live(), 1U);
}

TEST_F(TempStorageTest, SingleUseBlockIsReleasedAfterCallAlsoIfItFails) {
  for (const bool fails : {false, true}) {
    const Status used = storage_->use_once(stream_, {1000, 0}, query_, [&](const TempStorage::Block& piece) {
      EXPECT_GE(piece.bytes, need({1000, 0}));
      EXPECT_EQ(memory_->live(), 1U);
      return fails ? Status(make_error(Code::Internal, "failed")) : Status();
    });
    EXPECT_EQ(used.has_value(), !fails);
    EXPECT_EQ(memory_->live(), 0U);
  }
  EXPECT_EQ(queries_, 1);
  memory_->record(stream_, true);
  const Status captured =
      storage_->use_once(stream_, {1000, 0}, query_, [](const TempStorage::Block&) { return Status(); });
  EXPECT_EQ(captured.error().code, Code::Capturing);
  EXPECT_EQ(memory_->mistakes(), 0);
}

// All threads query before one of them stores its result.
TEST_F(TempStorageTest, SingleUseBlockIsLargeEnoughWhileOtherThreadsQuery) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 300; ++round) {
    TempStorage storage(memory_);
    std::barrier all(kThreads);
    std::vector<std::thread> threads;
    for (int number = 0; number < kThreads; ++number) {
      threads.emplace_back([&, number] {
        const Size size = number % 2 == 0 ? Size{1 << 20, 0} : Size{0, 16};
        const TempStorage::Query query = [&](const Size& queried) -> Result<std::size_t> {
          all.arrive_and_wait();
          return need(queried);
        };
        (void)storage.use_once(stream_, size, query, [&](const TempStorage::Block& piece) {
          EXPECT_GE(piece.bytes, need(size));
          return Status();
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(TempStorageTest, CallDuringReleaseLeaksNothing) {
  ASSERT_TRUE(take(stream_, {1000, 0}).has_value());
  std::thread caller;
  std::atomic<bool> started{false};
  memory_->call_during_release([&] {
    caller = std::thread([&] {
      started = true;
      EXPECT_TRUE(take(stream_, {1000, 0}).has_value());
    });
    while (!started) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until it waits for the stream's storage
  });
  EXPECT_TRUE(storage_->release(stream_).has_value());
  caller.join();
  EXPECT_EQ(memory_->live(), 1U) << "the block of the second call";
  storage_.reset();
  EXPECT_EQ(memory_->live(), 0U);
  EXPECT_EQ(memory_->mistakes(), 0);
}

/// The expected state of the storage of one stream.
struct Model {
  Size asked;
  bool any = true;  // was queried
  std::size_t bytes = 0;
  std::set<void*> recorded;
};

TEST_F(TempStorageTest, IsLargeEnoughNeverShrinksAndQueriesOnlyToGrow) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto one_in = [&](unsigned n) { return random() % n == 0; };
    storage_ = std::make_unique<TempStorage>(memory_);
    std::map<void*, Model> models;
    ASSERT_TRUE(storage_->prefetch_size({128, 128}, query_).has_value());
    for (int step = 0; step < 200; ++step) {
      void* const stream = address(64 * (1 + random() % 4));
      Model& model = models.try_emplace(stream, Model{{128, 128}, true, 0, {}}).first->second;
      const Size size{random() % (1U << (random() % 24)), random() % (1U << (random() % 12))};
      const bool recording = one_in(5);
      memory_->record(stream, recording);
      memory_->fail_allocation(one_in(10));
      memory_->fail_release(one_in(10));
      if (one_in(40) && !recording) {
        const Status released = storage_->release(stream);
        if (released) model = Model{{128, 128}, true, 0, {}};
        ASSERT_TRUE(released.has_value() ||
                    released.error().code == (model.recorded.empty() ? Code::Internal : Code::InvalidArgument));
        if (!released && model.recorded.empty()) model = Model{{0, 0}, false, 0, {}};
        continue;
      }
      const int queries = queries_;
      const int allocations = memory_->allocations();
      const auto piece = take(stream, size);
      const bool exceeds = !model.any || size.items > model.asked.items || size.others > model.asked.others;
      ASSERT_EQ(queries_ - queries, exceeds ? 1 : 0);
      ASSERT_TRUE(!recording || memory_->allocations() == allocations);
      if (piece) {
        model.asked = {std::max(model.asked.items, size.items), std::max(model.asked.others, size.others)};
        model.any = true;
        ASSERT_GE(piece->bytes, need(size));
        ASSERT_GE(piece->bytes, model.bytes);
        ASSERT_TRUE(memory_->has(piece->memory));
        model.bytes = piece->bytes;
        if (recording) model.recorded.insert(piece->memory);
      } else {
        ASSERT_TRUE(piece.error().code == Code::Capturing ? recording : piece.error().code == Code::Unavailable);
      }
      for (void* const memory : model.recorded) ASSERT_TRUE(memory_->has(memory));
    }
    for (const auto& [stream, model] : models) memory_->record(stream, false);
    memory_->fail_release(false);
    storage_.reset();
    ASSERT_EQ(memory_->live(), 0U) << "seed " << seed;
  }
  EXPECT_EQ(memory_->mistakes(), 0);
}

TEST_F(TempStorageTest, ThreadsOnSeparateStreamsAreIndependent) {
  const TempStorage::Query query = [](const Size& size) -> Result<std::size_t> { return need(size); };
  std::vector<std::thread> threads;
  for (unsigned number = 1; number <= 4; ++number) {
    threads.emplace_back([&, number] {
      std::mt19937 random(number);
      for (int step = 0; step < 500; ++step) {
        const Size size{random() % 1000000, 0};
        const auto piece = take(address(64 * number), size, query);
        ASSERT_TRUE(piece.has_value());
        ASSERT_GE(piece->bytes, need(size));
        ASSERT_TRUE(step % 100 != 99 || storage_->release(address(64 * number)).has_value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  storage_.reset();
  EXPECT_EQ(memory_->live(), 0U);
  EXPECT_EQ(memory_->mistakes(), 0);
}

}  // namespace
}  // namespace kiln::test
