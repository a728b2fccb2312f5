#include "support/engine_fixture.hpp"

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "base/asked_at.hpp"

namespace kiln::test {
namespace {

// What a tier has of a unit, as `Parts::look` says it.
class EngineLookTest : public EngineTest {
 protected:
  EngineLookTest() {
    parts_ = parts();
    parts_.look = [this](const Order& order, std::uint64_t /*flow*/) -> Result<std::optional<Answer>> {
      ++looks_;
      if (while_looking_) while_looking_();
      if (order.unit.name() != "at hand") return std::optional<Answer>();
      Answer answer;
      answer.artifact.bytes = Bytes::of("found " + order.unit.name());
      answer.origin = Origin::Disk;
      return std::optional(answer);
    };
  }

  Engine::Parts parts_;
  std::atomic<int> looks_{0};
  std::function<void()> while_looking_;
};

TEST_F(EngineLookTest, WhatATierHasAGetFindsWithoutAThread) {
  Engine engine(parts_);
  const Got got = get(engine, "at hand");
  EXPECT_EQ(text(got), "found at hand");
  EXPECT_EQ(engine.ready(order("at hand")), *got);
  EXPECT_EQ(engine.status().found, 1U);
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  for (const SeenThread& thread : work_.threads()) EXPECT_NE(thread.id, std::this_thread::get_id());
  EXPECT_EQ(work_.times_begun("at hand"), 0);
  EXPECT_EQ(log_.count(Event::Kind::HotCompile), 1U) << "of the other";
}

TEST_F(EngineLookTest, WhoeverHasNoTimeDoesNotLook) {
  work_.otherwise({.held = true});
  Engine engine(parts_);
  EXPECT_EQ(code(get(engine, "at hand", 0ns)), Code::TimedOut);
  EXPECT_EQ(looks_, 0);
}

TEST_F(EngineLookTest, WhatIsFoundNeedNotWaitForItsTurn) {
  work_.when("long", {.held = true});
  Engine engine(parts_, {.most_threads = 1});
  request(engine, {"long"});
  EXPECT_TRUE(work_.begun("long"));
  const Order wanted = order("at hand");
  engine.request({&wanted, 1});
  EXPECT_EQ(text(engine.get(wanted, kForever)), "found at hand");
  work_.open("long");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.times_begun("at hand"), 0);
}

TEST_F(EngineLookTest, WhoeverLooksKnowsSinceWhenItIsWanted) {
  std::optional<std::chrono::nanoseconds> wanted_at;
  while_looking_ = [&] { wanted_at = AskedAt::time(); };
  work_.when("long", {.held = true});
  Engine engine(parts_, {.most_threads = 1});
  request(engine, {"long"});
  EXPECT_TRUE(work_.begun("long"));
  const Order wanted = order("at hand");
  const auto requested = clock_.steady();
  engine.request({&wanted, 1});
  clock_.advance(5s);
  EXPECT_EQ(text(engine.get(wanted, kForever)), "found at hand");
  EXPECT_EQ(wanted_at, requested) << "it waited in the queue since then";
  engine.forget(wanted);
  clock_.advance(5s);
  EXPECT_EQ(text(engine.get(wanted, kForever)), "found at hand");
  EXPECT_EQ(wanted_at, clock_.steady()) << "it is wanted anew";
  EXPECT_FALSE(AskedAt::time().has_value());
  work_.open("long");
  EXPECT_TRUE(settles(engine));
}

TEST_F(EngineLookTest, AThreadKnowsSinceWhenWhatItMakesIsWanted) {
  std::atomic<std::int64_t> wanted_at = 0;
  parts_.resolve = [&, resolve = parts_.resolve](const Order& order, const Recipe& recipe) {
    wanted_at = AskedAt::time().value_or(0ns).count();
    return resolve(order, recipe);
  };
  Engine engine(parts_);
  for (int again = 0; again < 2; ++again) {
    clock_.advance(5s);
    const Order wanted = order("a");
    engine.request({&wanted, 1});
    EXPECT_TRUE(settles(engine));
    EXPECT_EQ(wanted_at, clock_.steady().count());
    engine.forget(wanted);
  }
}

TEST_F(EngineLookTest, WhatIsFoundAnswersAllWhoWait) {
  work_.when("first", {.held = true});
  Engine engine(parts_, {.most_threads = 1});
  auto first = getting(engine, "first");
  EXPECT_TRUE(work_.begun("first"));
  auto hurried = getting(engine, "at hand", 5ms);
  EXPECT_TRUE(clock_.waiting(2));
  EXPECT_EQ(text(get(engine, "at hand")), "found at hand");
  EXPECT_EQ(text(hurried.get()), "found at hand");
  work_.open("first");
  EXPECT_TRUE(first.get().ok());
}

TEST_F(EngineLookTest, AThreadThatBeginsWhileSomebodyLooksIsLeftAlone) {
  work_.when("at hand", {.held = true});
  Engine engine(parts_);
  while_looking_ = [&] {
    request(engine, {"at hand"});
    EXPECT_TRUE(work_.begun("at hand"));
  };
  EXPECT_EQ(text(get(engine, "at hand")), "found at hand");
  work_.open("at hand");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(text(get(engine, "at hand", 0ns)), "compiled source of at hand");
}

TEST_F(EngineLookTest, AnErrorOrAnExceptionOfLookingCostsACompile) {
  parts_.look = [](const Order& order, std::uint64_t /*flow*/) -> Result<std::optional<Answer>> {
    if (order.unit.name() == "a") throw std::bad_alloc();
    return failure(Code::Io, "the disk is gone");
  };
  Engine engine(parts_);
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  EXPECT_EQ(text(get(engine, "b")), "compiled source of b");
}

}  // namespace
}  // namespace kiln::test
