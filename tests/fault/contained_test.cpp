// What a compile may do to its worker, and that it costs nobody else anything.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <future>

#include "base/error.hpp"
#include "support/sanitizer.hpp"
#include "support/worker_rig.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Contained : public WorkerRig {
 protected:
  // A worker that does what its unit is called.
  void open_misbehaving(std::chrono::milliseconds limit = 20s) {
    pool_options_.program = KILN_MISBEHAVING_WORKER;
    open({nullptr, nullptr, limit, false});
  }
  static Unit unit_called(const std::string& name) {
    return Unit::cuda(name, "// include\nextern \"C\" __global__ void k() {}\n").entry("k");
  }
  std::vector<std::string> told(Event::Kind kind) const {
    std::vector<std::string> texts;
    for (const Event& event : log_.of(kind)) texts.push_back(event.message);
    return texts;
  }
  // Twenty units on another worker while `eater` runs; each must be right, and how long they took is returned.
  double others_beside(const Unit& eater, Result<Compiled>& eaten) {
    std::vector<std::string> right;
    for (int i = 0; i < 20; ++i) right.push_back(reference(header_unit(i)));
    auto eating = std::async(std::launch::async, [&] { return compile(eater); });
    const auto start = Clock::now();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(bytes(compile(header_unit(i))), right[static_cast<std::size_t>(i)]);
    const double ms = ms_since(start);
    EXPECT_EQ(eating.wait_for(0s), std::future_status::timeout) << "the eater was done before the others";
    eaten = eating.get();
    return ms;
  }
  void expect_set_aside(const Unit& unit, const Result<Compiled>& compiled, const std::vector<std::string>& words) {
    ASSERT_FALSE(compiled.ok());
    EXPECT_EQ(compiled.error().code, Code::CompileFailed);
    for (const std::string& word : words) {
      EXPECT_NE(compiled.error().message.find(word), std::string::npos) << word << " in " << compiled.error().message;
    }
    EXPECT_EQ(log_.count(Event::Kind::WorkerLost), 2u);
    ASSERT_EQ(log_.count(Event::Kind::SetAside), 1u);
    EXPECT_EQ(told(Event::Kind::SetAside)[0], compiled.error().message);
    EXPECT_FALSE(compiler_->worth_another_try(recipe(unit)));
  }
};

TEST_F(Contained, ACompileThatEatsMemoryIsStoppedAtItsLimitWhileTwentyOthersFinish) {
  if (kShadowMemory) GTEST_SKIP() << "under a sanitizer a worker has no limit of memory";
  pool_options_.memory_limit = std::uint64_t{768} << 20;
  open();
  Result<Compiled> eaten = failure(Code::Internal, "");
  const auto start = Clock::now();
  const double others = others_beside(memory_eater(), eaten);
  std::printf("figure: memory eater in 768 MB stopped after %.1f s, two tries; 20 others beside it took %.1f s\n",
              ms_since(start) / 1000, others / 1000);
  expect_set_aside(memory_eater(), eaten, {"memory", "768 MB", "KILN_WORKER_MEMORY", "2 times"});
  EXPECT_EQ(bytes(compile(header_unit(99))), reference(header_unit(99)));
}

TEST_F(Contained, ACompileThatTakesForEverIsStoppedAtItsLimitWhileTwentyOthersFinish) {
  open({nullptr, nullptr, 4s, false});
  Result<Compiled> eaten = failure(Code::Internal, "");
  const auto start = Clock::now();
  const double others = others_beside(time_eater(), eaten);
  std::printf(
      "figure: time eater with a limit of 4 s stopped after %.1f s, two tries; 20 others beside it took %.1f s\n",
      ms_since(start) / 1000, others / 1000);
  expect_set_aside(time_eater(), eaten, {"4 s", "KILN_WORKER_TIME_LIMIT", "2 times"});
  EXPECT_LT(ms_since(start), 30'000);
}

TEST_F(Contained, WhateverAWorkerDoesInsteadOfAnsweringCostsOneRetryAndThenTheUnitIsSetAside) {
  const std::pair<const char*, const char*> manners[] = {
      {"crash", "signal 11"},         {"abort", "signal 6"},    {"leave", "code 3"},
      {"close", "without an answer"}, {"garbage", "no frame"},  {"half", "middle of a frame"},
      {"nonsense", "makes sense"},    {"wrong", "makes sense"},
  };
  for (const auto& [name, cause] : manners) {
    SCOPED_TRACE(name);
    const std::size_t lost = log_.count(Event::Kind::WorkerLost);
    const std::size_t aside = log_.count(Event::Kind::SetAside);
    if (compiler_ == nullptr) open_misbehaving();
    const auto compiled = compile(unit_called(name));
    ASSERT_FALSE(compiled.ok());
    EXPECT_EQ(compiled.error().code, Code::CompileFailed);
    EXPECT_NE(compiled.error().message.find(cause), std::string::npos) << compiled.error().message;
    EXPECT_EQ(log_.count(Event::Kind::WorkerLost), lost + 2);
    EXPECT_EQ(log_.count(Event::Kind::SetAside), aside + 1);
    EXPECT_FALSE(compiler_->worth_another_try(recipe(unit_called(name))));
    EXPECT_EQ(bytes(compile(unit_called("good"))), "bytes");
  }
}

TEST_F(Contained, AFreshWorkerAnswersWhatTheFirstDidNot) {
  for (const char* name : {"crash-once", "abort-once", "leave-once", "close-once", "garbage-once", "half-once",
                           "nonsense-once", "wrong-once"}) {
    SCOPED_TRACE(name);
    if (compiler_ == nullptr) open_misbehaving();
    const std::size_t lost = log_.count(Event::Kind::WorkerLost);
    EXPECT_EQ(bytes(compile(unit_called(name))), "bytes");
    EXPECT_EQ(log_.count(Event::Kind::WorkerLost), lost + 1);
    std::filesystem::remove(folder_.path("misbehaved"));
  }
  EXPECT_EQ(log_.count(Event::Kind::SetAside), 0u);
}

TEST_F(Contained, AWorkerThatNeverAnswersIsEndedAtTheLimit) {
  open_misbehaving(300ms);
  const auto start = Clock::now();
  expect_set_aside(unit_called("mute"), compile(unit_called("mute")), {"KILN_WORKER_TIME_LIMIT"});
  EXPECT_LT(ms_since(start), 10'000);
}

TEST_F(Contained, AWorkerThatNeverReadsIsEndedAtTheLimitHoweverLargeTheUnit) {
  std::filesystem::create_symlink(KILN_MISBEHAVING_WORKER, folder_.path("deaf"));
  pool_options_.program = folder_.path("deaf");
  open({nullptr, nullptr, 300ms, false});
  const Unit large = Unit::cuda("large", "// include " + std::string(4 << 20, 'x') + "\n");
  const auto start = Clock::now();
  expect_set_aside(large, compile(large), {"KILN_WORKER_TIME_LIMIT"});
  EXPECT_LT(ms_since(start), 10'000);
}

TEST_F(Contained, AWorkerThatSomebodyElseKillsIsNotTheUnitsFault) {
  open_misbehaving();
  for (int i = 0; i < 5; ++i) {
    auto compiling = std::async(std::launch::async, [&] { return compile(unit_called("mute-once")); });
    while (!std::filesystem::exists(folder_.path("misbehaved"))) std::this_thread::sleep_for(1ms);
    for (const pid_t id : pool_->workers()) kill(id, SIGKILL);
    EXPECT_EQ(bytes(compiling.get()), "bytes");
    std::filesystem::remove(folder_.path("misbehaved"));
  }
  EXPECT_EQ(log_.count(Event::Kind::WorkerLost), 5u);
  EXPECT_EQ(log_.count(Event::Kind::SetAside), 0u);
}

TEST_F(Contained, NorIsOneThatIsKilledInTheMiddleOfItsAnswer) {
  open_misbehaving();
  const auto compiled = compile(unit_called("head"));  // dies by SIGKILL each time
  EXPECT_FALSE(compiled.ok());
  EXPECT_EQ(log_.count(Event::Kind::WorkerLost), 20u) << "a unit is not blamed before twenty";
}

TEST_F(Contained, AWorkerOfALargeProgramIsNotTakenForALargeWorker) {
  constexpr std::size_t kLarge = std::size_t{200} << 20;
  void* const held = mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(held, MAP_FAILED);
  pool_options_.memory_limit = std::uint64_t{256} << 20;
  open_misbehaving();
  (void)compile(unit_called("head"));
  munmap(held, kLarge);
  ASSERT_GE(log_.count(Event::Kind::WorkerLost), 3u);
  EXPECT_EQ(told(Event::Kind::WorkerLost)[0].find("having used"), std::string::npos)
      << told(Event::Kind::WorkerLost)[0];
}

}  // namespace
}  // namespace kiln::test
