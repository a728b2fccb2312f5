// Memory tiers on the driver double: its memory is counted as a driver would, and no kernel runs.
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
// All results that are kept, and the scratch of the last step.
constexpr std::size_t kPeak = (kSteps + 1) * kPiece;

/// A program that keeps what it has computed, as programs do: each step needs a piece of scratch, which it releases,
/// and one for its result, which it keeps for as long as nobody wants the memory.
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
  /// For MemoryOptions::on_out_of_memory.
  std::function<bool(std::size_t)> dropping() {
    return [this](std::size_t) {
      kept.clear();
      ++dropped;
      return true;
    };
  }
};

using MemoryTiers = MemoryTest;

TEST_F(MemoryTiers, TheWorkloadHasThePeakThatTheseTestsHalve) {
  const Program program = open({});
  Workload work;
  ASSERT_TRUE(work.run(program).ok());
  EXPECT_EQ(program.memory.use().peak, kPeak);
  EXPECT_EQ(program.memory.use().bytes, kSteps * kPiece);
}

TEST_F(MemoryTiers, HalfThePeakIsRefusedCleanlyByAPool) {
  {
    const Program program = open({MemoryTier::Pool, kPeak / 2, {}, {}});
    Workload work;
    const Status refused = work.run(program);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::Unavailable);
    for (const char* part : {"16384 bytes", "limit of 106496 bytes", "98304 are in use", "memory tier pool"}) {
      EXPECT_TRUE(says(refused.error().message, part)) << part << " is not in: " << refused.error().message;
    }
    EXPECT_EQ(program.memory.use().retries, 0U);
    EXPECT_EQ(program.memory.use().refusals, 1U);
    EXPECT_LE(program.memory.use().peak, kPeak / 2);
    EXPECT_TRUE(program.reserve(work.kept, kPiece / 2).ok()) << "there was room for a smaller one";
    work.kept.clear();
    EXPECT_TRUE(program.reserve(work.kept, kPeak / 2).ok()) << "what was released was not to be had again";
  }
  expect_nothing_left();
}

TEST_F(MemoryTiers, HalfThePeakIsSurvivedByAPatientPoolWhoseCallbackDropsACache) {
  {
    Workload work;
    const Program program = open({MemoryTier::PatientPool, kPeak / 2, work.dropping(), {}});
    const Status ran = work.run(program);
    EXPECT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_GE(work.dropped, 1U);
    EXPECT_EQ(program.memory.use().retries, work.dropped);
    EXPECT_EQ(program.memory.use().refusals, 0U);
    EXPECT_LE(program.memory.use().peak, kPeak / 2);
    const std::vector<Event> retried = events(Kind::MemoryRetried);
    ASSERT_EQ(retried.size(), work.dropped);
    EXPECT_EQ(retried[0].bytes, kPiece);
    EXPECT_NE(retried[0].stream, 0U);
    EXPECT_TRUE(says(retried[0].message, "retry 1 of 3")) << retried[0].message;
    work.kept.clear();
  }
  expect_nothing_left();
}

TEST_F(MemoryTiers, HalfThePeakIsNoLimitForManagedMemoryNorIsTheDeviceItself) {
  driver_.set_memory(kPeak / 2);
  {
    const Program program = open({MemoryTier::Managed, kPeak / 2, {}, {}});
    Workload work;
    const Status ran = work.run(program);
    EXPECT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_EQ(program.memory.use().peak, kPeak);
    EXPECT_EQ(driver_.calls("cuMemAllocManaged"), kAllocations);
  }
  expect_nothing_left();
}

TEST_F(MemoryTiers, ADeviceThatIsTooSmallIsAsGoodAsALimit) {
  for (const MemoryTier tier : {MemoryTier::Pool, MemoryTier::PatientPool, MemoryTier::Plain}) {
    driver_.set_memory(kPeak / 2);
    {
      Workload work;
      const Program program = open({tier, 0, work.dropping(), {}});
      const Status ran = work.run(program);
      EXPECT_EQ(ran.ok(), tier == MemoryTier::PatientPool) << to_string(tier);
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
  Memory::Use use;
};

class MemoryFaults : public MemoryTest {
 protected:
  /// The workload with its n-th allocation, and as many tries in a row as `times` says, out of memory. Nothing may be
  /// left.
  Outcome run_with_fault(MemoryTier tier, unsigned nth, unsigned times) {
    Workload work;
    Outcome outcome;
    {
      const Program program = open({tier, kPeak, work.dropping(), {}});
      driver_.fail("cuMemAllocFromPoolAsync", nth, DriverResult::OutOfMemory, times);
      const Status ran = work.run(program);
      outcome = {ran.ok(), ran ? "" : ran.error().message, program.memory.use()};
      // The double may still have faults to give, fewer than there are retries.
      EXPECT_TRUE(program.reserve(work.kept, kPiece).ok() || tier == MemoryTier::Pool);
      work.kept.clear();
      EXPECT_EQ(program.memory.use().bytes, 0U);
    }
    EXPECT_EQ(driver_.leaks(), 0U) << "allocation " << nth << ", " << times << " times";
    EXPECT_EQ(driver_.stale_uses(), 0U);
    return outcome;
  }
};

TEST_F(MemoryFaults, AtEveryAllocationAreTriedThreeTimesMoreThenRefusedAndLeaveNothing) {
  for (unsigned nth = 1; nth <= kAllocations; ++nth) {
    for (unsigned times = 1; times <= 5; ++times) {
      const Outcome outcome = run_with_fault(MemoryTier::PatientPool, nth, times);
      EXPECT_EQ(outcome.ran, times <= 3) << "allocation " << nth << ", " << times << " times: " << outcome.error;
      EXPECT_EQ(outcome.use.retries, std::min(times, 3U)) << "allocation " << nth << ", " << times << " times";
      EXPECT_EQ(outcome.use.refusals, times <= 3 ? 0U : 1U);
    }
  }
}

TEST_F(MemoryFaults, AtEveryAllocationAreNotTriedAgainByAPool) {
  for (unsigned nth = 1; nth <= kAllocations; ++nth) {
    const Outcome outcome = run_with_fault(MemoryTier::Pool, nth, 1);
    EXPECT_FALSE(outcome.ran) << "allocation " << nth;
    EXPECT_TRUE(says(outcome.error, "cuMemAllocFromPoolAsync failed")) << outcome.error;
    EXPECT_EQ(outcome.use.retries, 0U);
  }
}

TEST_F(MemoryFaults, ThatAreNotOutOfMemoryAreNotTriedAgain) {
  unsigned asked = 0;
  const auto count = [&](std::size_t) { return ++asked != 0; };
  const Program program = open({MemoryTier::PatientPool, 0, count, {}});
  driver_.fail("cuMemAllocFromPoolAsync", 1, DriverResult::InvalidHandle);
  std::vector<Buffer> kept;
  EXPECT_FALSE(program.reserve(kept, kPiece).ok());
  EXPECT_EQ(asked, 0U);
}

using MemoryCallback = MemoryTest;

TEST_F(MemoryCallback, ThatHasNothingMoreEndsIt) {
  unsigned asked = 0;
  std::size_t wanted = 0;
  const Program program = open({MemoryTier::PatientPool,
                                kPiece,
                                [&](std::size_t bytes) {
                                  wanted = bytes;
                                  return ++asked < 2;
                                },
                                {}});
  std::vector<Buffer> kept;
  EXPECT_FALSE(program.reserve(kept, 2 * kPiece).ok());
  EXPECT_EQ(asked, 2U);
  EXPECT_EQ(wanted, 2 * kPiece);
  EXPECT_EQ(events(Kind::MemoryRetried).size(), 1U);
}

TEST_F(MemoryCallback, ThatIsMissingMakesAPatientPoolAPlainOne) {
  const Program program = open({MemoryTier::PatientPool, kPiece, {}, {}});
  std::vector<Buffer> kept;
  EXPECT_FALSE(program.reserve(kept, 2 * kPiece).ok());
  EXPECT_EQ(memory_backend(program.memory), "patient pool");
}

TEST_F(MemoryCallback, MayAllocateAndIsNotAskedAgainForThat) {
  std::vector<Buffer> kept;
  std::optional<Program> program;
  unsigned asked = 0;
  bool refused = false;
  program.emplace(open({MemoryTier::PatientPool,
                        2 * kPiece,
                        [&](std::size_t) {
                          ++asked;
                          std::vector<Buffer> own;
                          refused = !program->reserve(own, 2 * kPiece).ok();
                          kept.clear();
                          return program->reserve(own, kPiece).ok();
                        },
                        {}}));
  ASSERT_TRUE(program->reserve(kept, kPiece).ok());
  std::vector<Buffer> wanted;
  EXPECT_TRUE(program->reserve(wanted, 2 * kPiece).ok());
  EXPECT_EQ(asked, 1U);
  EXPECT_TRUE(refused);
}

TEST_F(MemoryCallback, IsFollowedByAWaitForTheStream) {
  Workload work;
  const Program program = open({MemoryTier::PatientPool, kPiece, work.dropping(), {}});
  ASSERT_TRUE(program.reserve(work.kept, kPiece).ok());
  EXPECT_EQ(driver_.calls("cuStreamSynchronize"), 0U);
  ASSERT_TRUE(program.reserve(work.kept, kPiece).ok());
  EXPECT_EQ(driver_.calls("cuStreamSynchronize"), 1U);
  EXPECT_EQ(events(Kind::Synchronised).size(), 1U) << "a wait that no trace shows";
}

using MemoryPools = MemoryTest;

TEST_F(MemoryPools, ReuseInTheOrderOfTheStreamWithoutAWait) {
  driver_.set_memory(2 * kPiece);
  const Program program = open({});
  for (int i = 0; i < 20; ++i) {
    std::vector<Buffer> scratch;
    ASSERT_TRUE(program.reserve(scratch, 2 * kPiece).ok()) << i;
  }
  EXPECT_EQ(driver_.calls("cuStreamSynchronize"), 0U);
  EXPECT_EQ(program.memory.use().peak, 2 * kPiece);
}

TEST_F(MemoryPools, KeepWhatIsReleasedUntilTheyAreTrimmed) {
  const Program program = open({});
  const std::size_t before = available();
  {
    std::vector<Buffer> scratch;
    ASSERT_TRUE(program.reserve(scratch, 4 * kPiece).ok());
  }
  ASSERT_TRUE(program.stream->synchronise().ok());
  EXPECT_EQ(program.memory.use().bytes, 0U);
  EXPECT_EQ(available(), before - 4 * kPiece) << "a pool that gives everything back at every wait is none";
  ASSERT_TRUE(program.memory.trim().ok());
  EXPECT_EQ(available(), before);
  const std::vector<Event> trimmed = events(Kind::MemoryTrimmed);
  ASSERT_EQ(trimmed.size(), 1U);
  EXPECT_EQ(trimmed[0].bytes, 4 * kPiece);
}

TEST_F(MemoryPools, ThatCannotBeTrimmedSaySo) {
  const Program program = open({});
  EXPECT_TRUE(program.memory.trim().ok()) << "there is no pool yet, and nothing to give back";
  std::vector<Buffer> kept;
  ASSERT_TRUE(program.reserve(kept, kPiece).ok());
  driver_.fail("cuMemPoolTrimTo", 1, DriverResult::Unknown);
  const Status refused = program.memory.trim();
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(says(refused.error().message, "cuMemPoolTrimTo")) << refused.error().message;
  EXPECT_EQ(events(Kind::MemoryTrimmed).size(), 0U);
}

TEST_F(MemoryPools, OtherMemoryIsFreedWhenItsStreamHasDoneItsWork) {
  std::size_t told = 0;
  for (const MemoryTier tier : {MemoryTier::Plain, MemoryTier::Managed}) {
    const Program program = open({tier, 0, {}, {}});
    std::vector<Buffer> kept;
    ASSERT_TRUE(program.reserve(kept, kPiece).ok());
    const auto to = static_cast<cuda::DevicePointer>(reinterpret_cast<std::uintptr_t>(kept[0].native()));
    const std::vector<char> bytes(kPiece, 1);
    auto* const stream = static_cast<cuda::Stream>(program.stream->native());
    ASSERT_EQ(driver_.driver().MemcpyHtoDAsync(to, bytes.data(), kPiece, stream), DriverResult::Success);
    const std::size_t waits = driver_.calls("cuStreamSynchronize");
    kept.clear();
    EXPECT_EQ(driver_.calls("cuStreamSynchronize"), waits + 1) << to_string(tier);
    EXPECT_EQ(events(Kind::Synchronised).size(), ++told) << "a wait that no trace shows";
    EXPECT_EQ(driver_.counts().allocations, 0U) << to_string(tier);
    EXPECT_TRUE(program.stream->synchronise().ok()) << "freed under the copy";
    ++told;
    EXPECT_TRUE(program.memory.trim().ok());
  }
}

TEST_F(MemoryPools, WhatDidNotComeFromThemIsLeftAlone) {
  const Program program = open({});
  const Allocator allocator = program.memory.allocator();
  void* const memory = allocator.allocate(kPiece, program.stream->native());
  ASSERT_NE(memory, nullptr);
  allocator.release(memory, kPiece, program.stream->native());
  allocator.release(memory, kPiece, program.stream->native());
  allocator.release(this, kPiece, program.stream->native());
  EXPECT_EQ(driver_.calls("cuMemFreeAsync"), 1U);
  EXPECT_EQ(program.memory.use().bytes, 0U);
}

}  // namespace
}  // namespace kiln::test
