// SPDX-License-Identifier: Apache-2.0
// Memory tiers on the driver double, which accounts for memory like a driver and runs no kernel.
#include <functional>

#include "runtime/memory_fixture.hpp"

namespace kiln::test {
namespace {

using cuda::DriverResult;
using runtime::Memory;
using runtime::MemoryOptions;
using runtime::MemoryTier;
using Kind = Event::Kind;

constexpr unsigned kSteps = 12;
constexpr unsigned kAllocations = 2 * kSteps;
// All retained results plus the scratch memory of the last step.
constexpr std::size_t kPeak = (kSteps + 1) * kPiece;

/// A program that caches its results: each step allocates scratch memory, which it releases, and memory for its result,
/// which it keeps until the memory is needed.
struct Workload {
  std::vector<Buffer> kept;
  unsigned dropped = 0;

  template <class Program>
  Status run(const Program& program) {
    for (unsigned step = 0; step < kSteps; ++step) {
      std::vector<Buffer> scratch;
      if (Status reserved = program.reserve(scratch, kPiece); !reserved) return reserved;
      if (Status reserved = program.reserve(kept, kPiece); !reserved) return reserved;
    }
    return {};
  }
  /// Returns a callback for MemoryOptions::on_out_of_memory.
  std::function<bool(std::size_t)> dropping() {
    return [this](std::size_t) {
      kept.clear();
      ++dropped;
      return true;
    };
  }
};

using MemoryTiers = MemoryTest;

TEST_F(MemoryTiers, WorkloadHasExpectedPeak) {
  const Program program = open({});
  Workload work;
  ASSERT_TRUE(work.run(program).has_value());
  EXPECT_EQ(program.memory.usage().peak, kPeak);
  EXPECT_EQ(program.memory.usage().bytes, kSteps * kPiece);
}

TEST_F(MemoryTiers, PoolFailsCleanlyAtHalfThePeak) {
  {
    const Program program = open({MemoryTier::Pool, kPeak / 2, {}, {}, {}});
    Workload work;
    const Status rejected = work.run(program);
    ASSERT_FALSE(rejected.has_value());
    EXPECT_EQ(rejected.error().code, Code::Unavailable);
    for (const char* part : {"16384 bytes", "limit of 106496 bytes", "98304 bytes are in use", "memory tier pool"}) {
      EXPECT_TRUE(says(rejected.error().message, part)) << part << " is not in: " << rejected.error().message;
    }
    EXPECT_EQ(program.memory.usage().retries, 0U);
    EXPECT_EQ(program.memory.usage().failures, 1U);
    EXPECT_LE(program.memory.usage().peak, kPeak / 2);
    EXPECT_TRUE(program.reserve(work.kept, kPiece / 2).has_value()) << "a smaller allocation fits";
    work.kept.clear();
    EXPECT_TRUE(program.reserve(work.kept, kPeak / 2).has_value()) << "released memory could not be allocated again";
  }
  expect_nothing_left();
}

TEST_F(MemoryTiers, RetryingPoolSurvivesHalfThePeakWithCallback) {
  {
    Workload work;
    const Program program = open({MemoryTier::RetryingPool, kPeak / 2, {}, work.dropping(), {}});
    const Status ran = work.run(program);
    EXPECT_TRUE(ran.has_value()) << ran.error().message;
    EXPECT_GE(work.dropped, 1U);
    EXPECT_EQ(program.memory.usage().retries, work.dropped);
    EXPECT_EQ(program.memory.usage().failures, 0U);
    EXPECT_LE(program.memory.usage().peak, kPeak / 2);
    const std::vector<Event> retried = events(runtime::events::kAllocationRetried);
    ASSERT_EQ(retried.size(), work.dropped);
    EXPECT_EQ(retried[0].bytes, kPiece);
    EXPECT_NE(retried[0].stream, 0U);
    EXPECT_TRUE(says(retried[0].message, "retry 1 of 3")) << retried[0].message;
    work.kept.clear();
  }
  expect_nothing_left();
}

TEST_F(MemoryTiers, ManagedMemoryExceedsLimitAndDeviceSize) {
  driver_.set_memory(kPeak / 2);
  {
    const Program program = open({MemoryTier::Managed, kPeak / 2, {}, {}, {}});
    Workload work;
    const Status ran = work.run(program);
    EXPECT_TRUE(ran.has_value()) << ran.error().message;
    EXPECT_EQ(program.memory.usage().peak, kPeak);
    EXPECT_EQ(driver_.calls("cuMemAllocManaged"), kAllocations);
  }
  expect_nothing_left();
}

TEST_F(MemoryTiers, SmallDeviceBehavesLikeLimit) {
  for (const MemoryTier tier : {MemoryTier::Pool, MemoryTier::RetryingPool, MemoryTier::Plain}) {
    driver_.set_memory(kPeak / 2);
    {
      Workload work;
      const Program program = open({tier, 0, {}, work.dropping(), {}});
      const Status ran = work.run(program);
      EXPECT_EQ(ran.has_value(), tier == MemoryTier::RetryingPool) << to_string(tier);
      if (!ran) {
        EXPECT_TRUE(says(ran.error().message, "CUDA_ERROR_OUT_OF_MEMORY")) << ran.error().message;
      }
      work.kept.clear();
    }
    expect_nothing_left();
  }
}

struct Outcome {
  bool ran = false;
  std::string error;
  Memory::Usage use;
};

class MemoryFaults : public MemoryTest {
 protected:
  /// Runs the workload with `times` consecutive out-of-memory errors from its n-th allocation on. Checks for leaks.
  Outcome run_with_fault(MemoryTier tier, unsigned nth, unsigned times) {
    Workload work;
    Outcome outcome;
    {
      const Program program = open({tier, kPeak, {}, work.dropping(), {}});
      driver_.fail("cuMemAllocFromPoolAsync", nth, DriverResult::OutOfMemory, times);
      const Status ran = work.run(program);
      outcome = {ran.has_value(), ran ? "" : ran.error().message, program.memory.usage()};
      // The driver double may have remaining faults, but fewer than the number of retries.
      EXPECT_TRUE(program.reserve(work.kept, kPiece).has_value() || tier == MemoryTier::Pool);
      work.kept.clear();
      EXPECT_EQ(program.memory.usage().bytes, 0U);
    }
    EXPECT_EQ(driver_.leaks(), 0U) << "allocation " << nth << ", " << times << " times";
    EXPECT_EQ(driver_.stale_uses(), 0U);
    return outcome;
  }
};

TEST_F(MemoryFaults, AreRetriedThreeTimesAtEveryAllocationWithoutLeaks) {
  for (unsigned nth = 1; nth <= kAllocations; ++nth) {
    for (unsigned times = 1; times <= 5; ++times) {
      const Outcome outcome = run_with_fault(MemoryTier::RetryingPool, nth, times);
      EXPECT_EQ(outcome.ran, times <= 3) << "allocation " << nth << ", " << times << " times: " << outcome.error;
      EXPECT_EQ(outcome.use.retries, std::min(times, 3U)) << "allocation " << nth << ", " << times << " times";
      EXPECT_EQ(outcome.use.failures, times <= 3 ? 0U : 1U);
    }
  }
}

TEST_F(MemoryFaults, AreNotRetriedByPool) {
  for (unsigned nth = 1; nth <= kAllocations; ++nth) {
    const Outcome outcome = run_with_fault(MemoryTier::Pool, nth, 1);
    EXPECT_FALSE(outcome.ran) << "allocation " << nth;
    EXPECT_TRUE(says(outcome.error, "cuMemAllocFromPoolAsync failed")) << outcome.error;
    EXPECT_EQ(outcome.use.retries, 0U);
  }
}

TEST_F(MemoryFaults, AreRetriedOnlyForOutOfMemory) {
  unsigned asked = 0;
  const auto count = [&](std::size_t) { return ++asked != 0; };
  const Program program = open({MemoryTier::RetryingPool, 0, {}, count, {}});
  driver_.fail("cuMemAllocFromPoolAsync", 1, DriverResult::InvalidHandle);
  std::vector<Buffer> kept;
  EXPECT_FALSE(program.reserve(kept, kPiece).has_value());
  EXPECT_EQ(asked, 0U);
}

using MemoryCallback = MemoryTest;

TEST_F(MemoryCallback, ReturningFalseStopsRetries) {
  unsigned asked = 0;
  std::size_t wanted = 0;
  const Program program = open({MemoryTier::RetryingPool,
                                kPiece,
                                {},
                                [&](std::size_t bytes) {
                                  wanted = bytes;
                                  return ++asked < 2;
                                },
                                {}});
  std::vector<Buffer> kept;
  EXPECT_FALSE(program.reserve(kept, 2 * kPiece).has_value());
  EXPECT_EQ(asked, 2U);
  EXPECT_EQ(wanted, 2 * kPiece);
  EXPECT_EQ(events(runtime::events::kAllocationRetried).size(), 1U);
}

TEST_F(MemoryCallback, MissingCallbackDisablesRetries) {
  const Program program = open({MemoryTier::RetryingPool, kPiece, {}, {}, {}});
  std::vector<Buffer> kept;
  EXPECT_FALSE(program.reserve(kept, 2 * kPiece).has_value());
  EXPECT_EQ(memory_tier_name(program.memory), "retrying_pool");
}

TEST_F(MemoryCallback, CanAllocateWithoutRecursion) {
  std::vector<Buffer> kept;
  std::optional<Program> program;
  unsigned asked = 0;
  bool rejected = false;
  program.emplace(open({MemoryTier::RetryingPool,
                        2 * kPiece,
                        {},
                        [&](std::size_t) {
                          ++asked;
                          std::vector<Buffer> own;
                          rejected = !program->reserve(own, 2 * kPiece).has_value();
                          kept.clear();
                          return program->reserve(own, kPiece).has_value();
                        },
                        {}}));
  ASSERT_TRUE(program->reserve(kept, kPiece).has_value());
  std::vector<Buffer> wanted;
  EXPECT_TRUE(program->reserve(wanted, 2 * kPiece).has_value());
  EXPECT_EQ(asked, 1U);
  EXPECT_TRUE(rejected);
}

TEST_F(MemoryCallback, IsFollowedByStreamSynchronization) {
  Workload work;
  const Program program = open({MemoryTier::RetryingPool, kPiece, {}, work.dropping(), {}});
  ASSERT_TRUE(program.reserve(work.kept, kPiece).has_value());
  EXPECT_EQ(driver_.calls("cuStreamSynchronize"), 0U);
  ASSERT_TRUE(program.reserve(work.kept, kPiece).has_value());
  EXPECT_EQ(driver_.calls("cuStreamSynchronize"), 1U);
  EXPECT_EQ(events(Kind::Synchronized).size(), 1U) << "a wait without an event";
}

using MemoryPools = MemoryTest;

TEST_F(MemoryPools, ReuseMemoryInStreamOrderWithoutWait) {
  driver_.set_memory(2 * kPiece);
  const Program program = open({});
  for (int i = 0; i < 20; ++i) {
    std::vector<Buffer> scratch;
    ASSERT_TRUE(program.reserve(scratch, 2 * kPiece).has_value()) << i;
  }
  EXPECT_EQ(driver_.calls("cuStreamSynchronize"), 0U);
  EXPECT_EQ(program.memory.usage().peak, 2 * kPiece);
}

TEST_F(MemoryPools, RetainReleasedMemoryUntilTrim) {
  const Program program = open({});
  const std::size_t before = available();
  {
    std::vector<Buffer> scratch;
    ASSERT_TRUE(program.reserve(scratch, 4 * kPiece).has_value());
  }
  ASSERT_TRUE(program.stream->synchronize().has_value());
  EXPECT_EQ(program.memory.usage().bytes, 0U);
  EXPECT_EQ(available(), before - 4 * kPiece) << "the pool released its memory at a synchronization";
  ASSERT_TRUE(program.memory.trim().has_value());
  EXPECT_EQ(available(), before);
  const std::vector<Event> trimmed = events(runtime::events::kMemoryTrimmed);
  ASSERT_EQ(trimmed.size(), 1U);
  EXPECT_EQ(trimmed[0].bytes, 4 * kPiece);
}

TEST_F(MemoryPools, FailedTrimIsAnError) {
  const Program program = open({});
  EXPECT_TRUE(program.memory.trim().has_value()) << "there is no pool yet and nothing to release";
  std::vector<Buffer> kept;
  ASSERT_TRUE(program.reserve(kept, kPiece).has_value());
  driver_.fail("cuMemPoolTrimTo", 1, DriverResult::Unknown);
  const Status rejected = program.memory.trim();
  ASSERT_FALSE(rejected.has_value());
  EXPECT_TRUE(says(rejected.error().message, "cuMemPoolTrimTo")) << rejected.error().message;
  EXPECT_EQ(events(runtime::events::kMemoryTrimmed).size(), 0U);
}

TEST_F(MemoryPools, UnorderedMemoryIsFreedAfterStreamSynchronization) {
  std::size_t reported = 0;
  for (const MemoryTier tier : {MemoryTier::Plain, MemoryTier::Managed}) {
    const Program program = open({tier, 0, {}, {}, {}});
    std::vector<Buffer> kept;
    ASSERT_TRUE(program.reserve(kept, kPiece).has_value());
    const auto to = static_cast<cuda::DevicePointer>(reinterpret_cast<std::uintptr_t>(kept[0].native()));
    const std::vector<char> bytes(kPiece, 1);
    auto* const stream = static_cast<cuda::Stream>(program.stream->native());
    ASSERT_EQ(driver_.driver().MemcpyHtoDAsync(to, bytes.data(), kPiece, stream), DriverResult::Success);
    const std::size_t waits = driver_.calls("cuStreamSynchronize");
    kept.clear();
    EXPECT_EQ(driver_.calls("cuStreamSynchronize"), waits + 1) << to_string(tier);
    EXPECT_EQ(events(Kind::Synchronized).size(), ++reported) << "a wait without an event";
    EXPECT_EQ(driver_.counts().allocations, 0U) << to_string(tier);
    EXPECT_TRUE(program.stream->synchronize().has_value()) << "memory was freed during the copy";
    ++reported;
    EXPECT_TRUE(program.memory.trim().has_value());
  }
}

TEST_F(MemoryPools, UnknownPointerIsIgnored) {
  const Program program = open({});
  const Allocator allocator = program.memory.allocator();
  const auto memory = allocator.allocate(kPiece, *program.stream);
  ASSERT_TRUE(memory.has_value());
  allocator.release(*memory, kPiece, *program.stream);
  allocator.release(*memory, kPiece, *program.stream);
  allocator.release(this, kPiece, *program.stream);
  EXPECT_EQ(driver_.calls("cuMemFreeAsync"), 1U);
  EXPECT_EQ(program.memory.usage().bytes, 0U);
}

}  // namespace
}  // namespace kiln::test
