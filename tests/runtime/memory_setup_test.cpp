// SPDX-License-Identifier: Apache-2.0
// Setup of memory tiers on the driver double: when, for which device, and after failures.
#include <atomic>
#include <thread>

#include <kiln/cuda.hpp>

#include "runtime/memory_fixture.hpp"
#include "support/processes/forked.hpp"

namespace kiln::test {
namespace {

using cuda::DriverResult;
using runtime::Memory;
using runtime::MemoryOptions;
using runtime::MemoryTier;
constexpr MemoryTier kTiers[] = {MemoryTier::Pool, MemoryTier::RetryingPool, MemoryTier::Managed, MemoryTier::Plain};

class MemorySetup : public MemoryTest {
 protected:
  /// Allocates once and returns the memory_tier_selected event.
  Event set_up(const Program& program) {
    std::vector<Buffer> kept;
    const Status reserved = program.reserve(kept, kPiece);
    EXPECT_TRUE(reserved.has_value()) << reserved.error().message;
    const std::vector<Event> set = events(runtime::events::kMemoryTierSelected);
    EXPECT_FALSE(set.empty());
    return set.empty() ? Event{} : set.back();
  }
};

TEST_F(MemorySetup, HappensOnceAtFirstAllocation) {
  const Program program = open({});
  EXPECT_EQ(driver_.calls("cuMemPoolCreate"), 0U);
  EXPECT_EQ(events(runtime::events::kMemoryTierSelected).size(), 0U);
  set_up(program);
  set_up(program);
  EXPECT_EQ(driver_.calls("cuMemPoolCreate"), 1U);
  EXPECT_EQ(events(runtime::events::kMemoryTierSelected).size(), 1U);
}

TEST_F(MemorySetup, ListenerCanBeSwitchedOnAfterTheDriverIsOpen) {
  std::atomic<bool> enabled{false};
  SessionOptions options = session_options();
  options.on_event_enabled = &enabled;
  const Memory memory;
  Session session = runtime::open_session(std::move(options), memory).value();
  ASSERT_TRUE(session.make_current(kiln::Backend::Cuda).has_value());
  const auto stream = session.stream(kiln::Backend::Cuda);
  ASSERT_TRUE(stream.has_value());
  ASSERT_TRUE(stream->synchronize().has_value());
  EXPECT_EQ(log_.count(Event::Kind::Synchronized), 0U);
  enabled = true;
  ASSERT_TRUE(stream->synchronize().has_value());
  EXPECT_EQ(log_.count(Event::Kind::Synchronized), 1U);
  ASSERT_TRUE(stream->allocate(kPiece).has_value());
  EXPECT_GE(log_.count(Event::Kind::Allocated), 1U);
  EXPECT_EQ(events(runtime::events::kMemoryTierSelected).size(), 1U);
}

TEST_F(MemorySetup, BackendNameIsTheEffectiveTier) {
  const char* const words[] = {"pool", "retrying_pool", "managed", "plain"};
  for (std::size_t i = 0; i < std::size(kTiers); ++i) {
    const Program program = open({kTiers[i], 0, {}, {}, {}});
    EXPECT_EQ(memory_tier_name(program.memory), "none") << "before the first allocation";
    EXPECT_EQ(program.memory.tier(), std::nullopt);
    const Event set = set_up(program);
    EXPECT_EQ(memory_tier_name(program.memory), words[i]);
    EXPECT_EQ(program.memory.tier(), kTiers[i]);
    EXPECT_EQ(set.requested, words[i]);
    EXPECT_EQ(set.selected, words[i]);
    EXPECT_EQ(set.message, "");
  }
}

TEST_F(MemorySetup, FailureFallsBackToPlainMemoryWithWarning) {
  struct Case {
    MemoryTier tier;
    const char* entry;
  };
  for (const Case& broken :
       {Case{MemoryTier::Pool, "cuDeviceGetAttribute"}, Case{MemoryTier::Pool, "cuMemPoolCreate"},
        Case{MemoryTier::Pool, "cuMemPoolSetAttribute"}, Case{MemoryTier::RetryingPool, "cuMemPoolCreate"},
        Case{MemoryTier::Managed, "cuDeviceGetAttribute"}}) {
    {
      const Program program = open({broken.tier, kPiece, {}, {}, {}});
      driver_.fail(broken.entry, 1, DriverResult::NotSupported);
      const Event set = set_up(program);
      EXPECT_EQ(set.requested, to_string(broken.tier));
      EXPECT_EQ(set.selected, "plain");
      EXPECT_TRUE(says(set.message, broken.entry)) << set.message;
      EXPECT_TRUE(says(set.message, "plain memory")) << set.message;
      EXPECT_EQ(memory_tier_name(program.memory), "plain");
      std::vector<Buffer> kept;
      EXPECT_TRUE(program.reserve(kept, 2 * kPiece).has_value()) << "plain memory has no limit";
      EXPECT_EQ(driver_.calls("cuMemAllocFromPoolAsync") + driver_.calls("cuMemAllocManaged"), 0U);
    }
    expect_nothing_left();
  }
}

TEST_F(MemorySetup, IgnoredLimitIsReported) {
  for (const MemoryTier tier : kTiers) {
    log_.clear();
    set_up(open({tier, kPiece, {}, {}, {}}));
    const std::vector<Event> warnings = events(Event::Kind::ConfigWarning);
    const bool has_limit = tier == MemoryTier::Pool || tier == MemoryTier::RetryingPool;
    ASSERT_EQ(warnings.size(), has_limit ? 0U : 1U) << to_string(tier);
    if (has_limit) continue;
    EXPECT_TRUE(says(warnings[0].message, "the limit of 16384 bytes is ignored: memory tier ")) << warnings[0].message;
  }
}

TEST_F(MemorySetup, MissingPoolFunctionFallsBackToPlainMemory) {
  unsigned of_kiln = 0;
  cuda::DriverFunctions functions;
  cuda::for_each_function(functions, [&](auto&, const char*, int) { ++of_kiln; });
  for (unsigned nth = 1; nth <= 9; ++nth) {
    const Program program = open({});
    driver_.fail("cuGetProcAddress", of_kiln + nth, DriverResult::NotFound);
    EXPECT_EQ(set_up(program).selected, nth <= 6 ? "plain" : "pool") << "function " << nth;
  }
}

TEST_F(MemorySetup, MissingDriverOrContextErrorIsNotCached) {
  const Program program = open({});
  driver_.fail("cuInit", 1, DriverResult::Unknown);
  std::vector<Buffer> kept;
  const Status closed = program.reserve(kept, kPiece);
  ASSERT_FALSE(closed.has_value());
  EXPECT_TRUE(says(closed.error().message, "cuInit")) << closed.error().message;

  cuda::Context context = nullptr;
  driver_.driver().CtxGetCurrent(&context);
  driver_.driver().CtxSetCurrent(nullptr);
  const Status none = program.reserve(kept, kPiece);
  ASSERT_FALSE(none.has_value());
  EXPECT_TRUE(says(none.error().message, "make a context current")) << none.error().message;
  EXPECT_EQ(events(runtime::events::kMemoryTierSelected).size(), 0U);
  EXPECT_EQ(memory_tier_name(program.memory), "none") << "there is no context yet";

  driver_.driver().CtxSetCurrent(context);
  EXPECT_EQ(set_up(program).selected, "pool");
  EXPECT_EQ(program.memory.usage().failures, 2U);
}

TEST_F(MemorySetup, DoesNotEndGraphCapture) {
  for (const MemoryTier tier : kTiers) {
    const Program program = open({tier, 0, {}, {}, {}});
    cuda::Stream recording = nullptr;
    GraphPointer graph = nullptr;
    ASSERT_EQ(driver_.driver().StreamCreate(&recording, cuda::kStreamNonBlocking), DriverResult::Success);
    ASSERT_EQ(driver_.application().StreamBeginCapture(recording, cuda::CaptureMode::Global), DriverResult::Success);
    set_up(program);
    EXPECT_EQ(driver_.application().StreamEndCapture(recording, &graph), DriverResult::Success) << to_string(tier);
    EXPECT_EQ(driver_.counts().lost_captures, 0U);
    driver_.application().GraphDestroy(graph);
    driver_.driver().StreamDestroy(recording);
  }
}

TEST_F(MemorySetup, IsPerDeviceWithOwnLimit) {
  {
    const Program first = open({MemoryTier::Pool, kPiece, {}, {}, {}});
    std::vector<Buffer> kept;
    ASSERT_TRUE(first.reserve(kept, kPiece).has_value());
    Session session = first.session;
    ASSERT_TRUE(session.make_current(kiln::Backend::Cuda, 1).has_value());
    const Program second{first.memory, session, session.stream(kiln::Backend::Cuda).value()};
    EXPECT_TRUE(second.reserve(kept, kPiece).has_value()) << "the memory of the other device was counted";
    EXPECT_FALSE(second.reserve(kept, 1).has_value());
    EXPECT_EQ(driver_.calls("cuMemPoolCreate"), 2U);
    EXPECT_EQ(first.memory.usage().bytes, 2 * kPiece);
    EXPECT_TRUE(first.memory.trim().has_value());
    EXPECT_EQ(events(runtime::events::kMemoryTrimmed).size(), 2U);
  }
  expect_nothing_left();
}

TEST_F(MemorySetup, ReportsPlainIfOneDeviceFailsAndReleasesToOriginalSource) {
  {
    const Program first = open({});
    std::vector<Buffer> of_first;
    ASSERT_TRUE(first.reserve(of_first, kPiece).has_value());
    Session session = first.session;
    ASSERT_TRUE(session.make_current(kiln::Backend::Cuda, 1).has_value());
    const Program second{first.memory, session, session.stream(kiln::Backend::Cuda).value()};
    driver_.fail("cuMemPoolCreate", 1, DriverResult::OutOfMemory);
    EXPECT_EQ(set_up(second).selected, "plain");
    EXPECT_EQ(memory_tier_name(first.memory), "plain");
    ASSERT_TRUE(session.make_current(kiln::Backend::Cuda, 0).has_value());
    const std::size_t freed = driver_.calls("cuMemFree");
    of_first.clear();
    EXPECT_EQ(driver_.calls("cuMemFree"), freed) << "memory of a pool was freed as plain memory";
    EXPECT_EQ(driver_.calls("cuMemFreeAsync"), 1U);
  }
  expect_nothing_left();
}

TEST_F(MemorySetup, DoesNotAffectOpenCl) {
  const Program program = open({});
  Session session = program.session;
  if (const auto devices = session.devices(kiln::Backend::OpenCl); !devices || devices->empty())
    GTEST_SKIP() << "no OpenCL device";
  ASSERT_TRUE(session.make_current(kiln::Backend::OpenCl, 0).has_value());
  const auto stream = session.stream(kiln::Backend::OpenCl);
  ASSERT_TRUE(stream.has_value()) << stream.error().message;
  const auto buffer = stream->allocate(kPiece);
  EXPECT_TRUE(buffer.has_value()) << buffer.error().message;
  EXPECT_EQ(program.memory.usage().peak, 0U);
}

TEST_F(MemorySetup, TwoAllocatorsForOneSessionAreRejected) {
  SessionOptions options = session_options();
  options.allocator = Memory().allocator();
  const auto rejected = runtime::open_session(options, Memory());
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, Code::InvalidArgument);
}

TEST_F(MemorySetup, IsUnavailableInForkedChild) {
  const Program program = open({});
  std::vector<Buffer> kept;
  ASSERT_TRUE(program.reserve(kept, kPiece).has_value());
  const Allocator allocator = program.memory.allocator();
  Forked child([&](const Forked::Side& parent) {
    const auto memory = allocator.allocate(kPiece, cuda::default_stream);
    const bool none = !memory && !program.memory.trim();
    allocator.release(kept[0].native(), kPiece, cuda::default_stream);
    parent.say(none ? memory.error().message : "it was served");
  });
  EXPECT_TRUE(says(child.line(), "opened before this process was forked")) << "the driver was called";
  EXPECT_EQ(child.exit_code(), 0);
  EXPECT_TRUE(program.reserve(kept, kPiece).has_value());
}

TEST_F(MemorySetup, ConcurrentThreadsRespectLimitWithoutLeaks) {
  constexpr unsigned kThreads = 4;
  constexpr unsigned kRounds = 200;
  {
    const Program program = open({MemoryTier::RetryingPool, 3 * kPiece, {}, [](std::size_t) { return true; }, {}});
    std::vector<std::thread> threads;
    std::atomic<unsigned> served{0};
    for (unsigned number = 0; number < kThreads; ++number) {
      threads.emplace_back([&, number] {
        Session session = program.session;
        ASSERT_TRUE(session.make_current(kiln::Backend::Cuda, 0).has_value());
        const Program own{program.memory, session, session.stream(kiln::Backend::Cuda).value()};
        for (unsigned round = 0; round < kRounds; ++round) {
          std::vector<Buffer> kept;
          for (unsigned i = 0; i <= (round + number) % 3; ++i) {
            if (own.reserve(kept, kPiece / 2).has_value()) ++served;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const Memory::Usage use = program.memory.usage();
    EXPECT_GT(served.load(), kRounds);
    EXPECT_EQ(use.bytes, 0U);
    EXPECT_LE(use.peak, 3 * kPiece);
    EXPECT_EQ(driver_.calls("cuMemPoolCreate"), 1U);
  }
  expect_nothing_left();
}

}  // namespace
}  // namespace kiln::test
