// How memory tiers are set up on the driver double: when, for which device, and what happens where that fails.
#include <thread>

#include "runtime/memory_fixture.hpp"
#include "support/forked.hpp"

namespace kiln::test {
namespace {

using cuda::DriverResult;
using runtime::Memory;
using runtime::MemoryOptions;
using runtime::MemoryTier;
using Kind = Event::Kind;

constexpr MemoryTier kTiers[] = {MemoryTier::Pool, MemoryTier::PatientPool, MemoryTier::Managed, MemoryTier::Plain};

class MemorySetup : public MemoryTest {
 protected:
  /// One allocation, and what memory_set said of it.
  Event set_up(const Program& program) {
    std::vector<Buffer> kept;
    const Status reserved = program.reserve(kept, kPiece);
    EXPECT_TRUE(reserved.ok()) << reserved.error().message;
    const std::vector<Event> set = events(Kind::MemorySet);
    EXPECT_FALSE(set.empty());
    return set.empty() ? Event{} : set.back();
  }
};

TEST_F(MemorySetup, IsDoneByTheFirstAllocationAndOnce) {
  const Program program = open({});
  EXPECT_EQ(driver_.calls("cuMemPoolCreate"), 0U);
  EXPECT_EQ(events(Kind::MemorySet).size(), 0U);
  set_up(program);
  set_up(program);
  EXPECT_EQ(driver_.calls("cuMemPoolCreate"), 1U);
  EXPECT_EQ(events(Kind::MemorySet).size(), 1U);
}

TEST_F(MemorySetup, OneWordSaysWhichTierIsInForce) {
  const char* const words[] = {"pool", "patient pool", "managed", "plain"};
  for (std::size_t i = 0; i < std::size(kTiers); ++i) {
    const Program program = open({kTiers[i], 0, {}, {}});
    EXPECT_EQ(memory_backend(program.memory), words[i]) << "before the first allocation";
    const Event set = set_up(program);
    EXPECT_EQ(memory_backend(program.memory), words[i]);
    EXPECT_EQ(set.requested, words[i]);
    EXPECT_EQ(set.selected, words[i]);
    EXPECT_EQ(set.message, "");
  }
}

TEST_F(MemorySetup, ThatFailsAtAnyCallFallsBackToPlainMemoryWithAWarning) {
  struct Case {
    MemoryTier tier;
    const char* entry;
  };
  for (const Case& broken :
       {Case{MemoryTier::Pool, "cuDeviceGetAttribute"}, Case{MemoryTier::Pool, "cuMemPoolCreate"},
        Case{MemoryTier::Pool, "cuMemPoolSetAttribute"}, Case{MemoryTier::PatientPool, "cuMemPoolCreate"},
        Case{MemoryTier::Managed, "cuDeviceGetAttribute"}}) {
    {
      const Program program = open({broken.tier, kPiece, {}, {}});
      driver_.fail(broken.entry, 1, DriverResult::NotSupported);
      const Event set = set_up(program);
      EXPECT_EQ(set.requested, to_string(broken.tier));
      EXPECT_EQ(set.selected, "plain");
      EXPECT_TRUE(says(set.message, broken.entry)) << set.message;
      EXPECT_TRUE(says(set.message, "plain memory")) << set.message;
      EXPECT_EQ(memory_backend(program.memory), "plain");
      std::vector<Buffer> kept;
      EXPECT_TRUE(program.reserve(kept, 2 * kPiece).ok()) << "plain memory has no limit";
      EXPECT_EQ(driver_.calls("cuMemAllocFromPoolAsync") + driver_.calls("cuMemAllocManaged"), 0U);
    }
    expect_nothing_left();
  }
}

TEST_F(MemorySetup, OnADriverThatLacksAFunctionOfAPoolFallsBackToo) {
  unsigned of_kiln = 0;
  cuda::DriverFunctions functions;
  cuda::for_each_function(functions, [&](auto&, const char*, int) { ++of_kiln; });
  for (unsigned nth = 1; nth <= 9; ++nth) {
    const Program program = open({});
    driver_.fail("cuGetProcAddress", of_kiln + nth, DriverResult::NotFound);
    EXPECT_EQ(set_up(program).selected, nth <= 6 ? "plain" : "pool") << "function " << nth;
  }
}

TEST_F(MemorySetup, WithoutADriverOrAContextIsAnErrorThatIsNotRemembered) {
  const Program program = open({});
  driver_.fail("cuInit", 1, DriverResult::Unknown);
  std::vector<Buffer> kept;
  const Status closed = program.reserve(kept, kPiece);
  ASSERT_FALSE(closed.ok());
  EXPECT_TRUE(says(closed.error().message, "cuInit")) << closed.error().message;

  cuda::Context context = nullptr;
  driver_.driver().CtxGetCurrent(&context);
  driver_.driver().CtxSetCurrent(nullptr);
  const Status none = program.reserve(kept, kPiece);
  ASSERT_FALSE(none.ok());
  EXPECT_TRUE(says(none.error().message, "make a context current")) << none.error().message;
  EXPECT_EQ(events(Kind::MemorySet).size(), 0U);

  driver_.driver().CtxSetCurrent(context);
  EXPECT_EQ(set_up(program).selected, "pool");
  EXPECT_EQ(program.memory.use().refusals, 2U);
}

TEST_F(MemorySetup, EndsNobodysRecordingOfAGraph) {
  for (const MemoryTier tier : kTiers) {
    const Program program = open({tier, 0, {}, {}});
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

TEST_F(MemorySetup, IsOncePerDeviceWithALimitForEach) {
  {
    const Program first = open({MemoryTier::Pool, kPiece, {}, {}});
    std::vector<Buffer> kept;
    ASSERT_TRUE(first.reserve(kept, kPiece).ok());
    Session session = first.session;
    ASSERT_TRUE(session.make_current("cuda", 1).ok());
    const Program second{first.memory, session, session.stream("cuda").value()};
    EXPECT_TRUE(second.reserve(kept, kPiece).ok()) << "the other device's memory counted";
    EXPECT_FALSE(second.reserve(kept, 1).ok());
    EXPECT_EQ(driver_.calls("cuMemPoolCreate"), 2U);
    EXPECT_EQ(first.memory.use().bytes, 2 * kPiece);
    EXPECT_TRUE(first.memory.trim().ok());
    EXPECT_EQ(events(Kind::MemoryTrimmed).size(), 2U);
  }
  expect_nothing_left();
}

TEST_F(MemorySetup, OfWhichOneDeviceFailsIsPlainInAWordAndGoesBackTheWayItCame) {
  {
    const Program first = open({});
    std::vector<Buffer> of_first;
    ASSERT_TRUE(first.reserve(of_first, kPiece).ok());
    Session session = first.session;
    ASSERT_TRUE(session.make_current("cuda", 1).ok());
    const Program second{first.memory, session, session.stream("cuda").value()};
    driver_.fail("cuMemPoolCreate", 1, DriverResult::OutOfMemory);
    EXPECT_EQ(set_up(second).selected, "plain");
    EXPECT_EQ(memory_backend(first.memory), "plain");
    ASSERT_TRUE(session.make_current("cuda", 0).ok());
    const std::size_t freed = driver_.calls("cuMemFree");
    of_first.clear();
    EXPECT_EQ(driver_.calls("cuMemFree"), freed) << "memory of a pool was freed as plain memory";
    EXPECT_EQ(driver_.calls("cuMemFreeAsync"), 1U);
  }
  expect_nothing_left();
}

TEST_F(MemorySetup, IsOfNoConcernToOpenCl) {
  const Program program = open({});
  Session session = program.session;
  if (const auto devices = session.devices("opencl"); !devices || devices->empty()) GTEST_SKIP() << "no OpenCL device";
  ASSERT_TRUE(session.make_current("opencl", 0).ok());
  const auto stream = session.stream("opencl");
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  const auto buffer = stream->allocate(kPiece);
  EXPECT_TRUE(buffer.ok()) << buffer.error().message;
  EXPECT_EQ(program.memory.use().peak, 0U);
}

TEST_F(MemorySetup, TwoAllocatorsForOneSessionAreRefused) {
  SessionOptions options = session_options();
  options.allocator = Memory().allocator();
  const auto refused = runtime::open_session(options, Memory());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::InvalidArgument);
}

TEST_F(MemorySetup, OfTheParentServesNoForkedChild) {
  const Program program = open({});
  std::vector<Buffer> kept;
  ASSERT_TRUE(program.reserve(kept, kPiece).ok());
  const Allocator allocator = program.memory.allocator();
  Forked child([&](const Forked::Side& parent) {
    const bool none = allocator.allocate(kPiece, nullptr) == nullptr && !program.memory.trim();
    allocator.release(kept[0].native(), kPiece, nullptr);
    parent.say(none ? allocator.why() : "it was served");
  });
  EXPECT_TRUE(says(child.line(), "opened before this process was forked")) << "the driver was asked";
  EXPECT_EQ(child.exit_code(), 0);
  EXPECT_TRUE(program.reserve(kept, kPiece).ok());
}

TEST_F(MemorySetup, FourThreadsNeverPassTheLimitAndLeaveNothing) {
  constexpr unsigned kThreads = 4;
  constexpr unsigned kRounds = 200;
  {
    const Program program = open({MemoryTier::PatientPool, 3 * kPiece, [](std::size_t) { return true; }, {}});
    std::vector<std::thread> threads;
    std::atomic<unsigned> served{0};
    for (unsigned number = 0; number < kThreads; ++number) {
      threads.emplace_back([&, number] {
        Session session = program.session;
        ASSERT_TRUE(session.make_current("cuda", 0).ok());
        const Program own{program.memory, session, session.stream("cuda").value()};
        for (unsigned round = 0; round < kRounds; ++round) {
          std::vector<Buffer> kept;
          for (unsigned i = 0; i <= (round + number) % 3; ++i) {
            if (own.reserve(kept, kPiece / 2).ok()) ++served;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const Memory::Use use = program.memory.use();
    EXPECT_GT(served.load(), kRounds);
    EXPECT_EQ(use.bytes, 0U);
    EXPECT_LE(use.peak, 3 * kPiece);
    EXPECT_EQ(driver_.calls("cuMemPoolCreate"), 1U);
  }
  expect_nothing_left();
}

}  // namespace
}  // namespace kiln::test
