#include "remote/courier.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/eventually.hpp"
#include "support/forked.hpp"
#include "support/own_process.hpp"
#include "support/sanitizer.hpp"
#include "support/stepped_clock.hpp"

namespace kiln {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using test::eventually;
using test::threads_of_kiln;

// Holds the courier up until it is opened, which its end does too.
class Gate {
 public:
  ~Gate() { open(); }
  void open() {
    if (!std::exchange(opened_, true)) promise_.set_value();
  }
  std::function<void()> errand() {
    return [future = promise_.get_future().share()] { future.wait_for(seconds(20)); };
  }

 private:
  std::promise<void> promise_;
  bool opened_ = false;
};

TEST(Courier, HasNoThreadBeforeItsFirstErrandAndOneHoweverManyThereAre) {
  Courier courier;
  EXPECT_TRUE(courier.drain(seconds(1)));
  EXPECT_TRUE(eventually([] { return threads_of_kiln() == 0; }));
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(courier.send(1, [] {}));
  courier.send_at(nanoseconds(0), [] {});
  ASSERT_TRUE(courier.drain(seconds(20)));
  EXPECT_EQ(threads_of_kiln(), 1u);
  courier.stop();
  EXPECT_TRUE(eventually([] { return threads_of_kiln() == 0; }));  // the kernel forgets a thread a little later
}

TEST(Courier, DoesErrandsInTheOrderInWhichTheyWereSent) {
  std::vector<int> done;
  Courier courier;
  for (int i = 0; i < 100; ++i) {
    const auto errand = [&done, i] { done.push_back(i); };
    if (i % 3 == 0) {
      courier.send_always(errand);
    } else {
      ASSERT_TRUE(courier.send(10, errand));
    }
  }
  ASSERT_TRUE(courier.drain(seconds(20)));
  ASSERT_EQ(done.size(), 100u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(Courier, TakesNoMoreErrandsThanFitAndNeverDropsARelease) {
  FleetPolicy policy;
  policy.most_uploads = 3;
  Gate gate;
  Courier courier(policy);
  ASSERT_TRUE(courier.send(1, gate.errand()));
  EXPECT_TRUE(courier.send(1, [] {}));
  EXPECT_TRUE(courier.send(1, [] {}));
  EXPECT_FALSE(courier.send(1, [] { ADD_FAILURE() << "was dropped and done"; }));
  bool released = false;
  courier.send_always([&] { released = true; });
  gate.open();
  ASSERT_TRUE(courier.drain(seconds(20)));
  EXPECT_TRUE(released);
  EXPECT_TRUE(courier.send(1, [] {}));  // there is room again
}

TEST(Courier, TakesNoMoreBytesThanFit) {
  FleetPolicy policy;
  policy.most_upload_bytes = 100;
  Gate gate;
  Courier courier(policy);
  EXPECT_FALSE(courier.send(101, [] {}));
  EXPECT_FALSE(courier.send(~std::uint64_t{0}, [] {}));
  ASSERT_TRUE(courier.send(60, gate.errand()));
  EXPECT_FALSE(courier.send(41, [] {}));
  EXPECT_TRUE(courier.send(40, [] {}));
  gate.open();
  ASSERT_TRUE(courier.drain(seconds(20)));
  EXPECT_TRUE(courier.send(100, [] {}));
}

TEST(Courier, DoesALaterErrandWhenItsTimeHasComeAndBeforeThoseThatWait) {
  test::SteppedClock clock;
  Gate gate;
  std::vector<std::string> done;
  Courier courier({}, clock);
  courier.send_at(clock.steady() + seconds(2), [&] { done.push_back("second"); });
  courier.send_at(clock.steady() + seconds(1), [&] { done.push_back("first"); });
  courier.send_always([&] { done.push_back("at once"); });
  ASSERT_TRUE(courier.drain(seconds(20)));  // by a clock that stands: nothing later is waited for
  EXPECT_EQ(done, std::vector<std::string>{"at once"});
  courier.send_always(gate.errand());
  courier.send_always([&] {
    system_clock().sleep(milliseconds(5));  // whoever drains must not take one that overtook it for this one
    done.push_back("behind");
  });
  clock.advance(seconds(3));
  gate.open();
  ASSERT_TRUE(courier.drain(seconds(20)));
  EXPECT_EQ(done, (std::vector<std::string>{"at once", "first", "second", "behind"}));
}

TEST(Courier, DrainingEndsWithItsTimeThoughSomethingIsLeft) {
  Gate gate;
  Courier courier;
  courier.send_always(gate.errand());
  EXPECT_FALSE(courier.drain(milliseconds(1)));
  gate.open();
}

TEST(Courier, StoppingWaitsForWhatWasSent) {
  int done = 0;
  Courier courier;
  for (int i = 0; i < 50; ++i) courier.send_always([&] { ++done; });
  courier.stop();
  EXPECT_EQ(done, 50);
  EXPECT_TRUE(courier.ending());
  EXPECT_FALSE(courier.send(1, [] { ADD_FAILURE() << "sent after the end"; }));
  courier.send_always([] { ADD_FAILURE() << "sent after the end"; });
  courier.stop();  // once more is no harm
}

TEST(Courier, StoppingForgetsWhatDoesNotEndInTimeAndAsksWhatIsUnderWayToEnd) {
  FleetPolicy policy;
  policy.drain_limit = milliseconds(10);
  Courier courier(policy);
  bool asked_to_end = false;
  courier.send_always([&] { asked_to_end = eventually([&] { return courier.ending(); }); });
  const auto forgotten = std::make_shared<int>(0);
  ASSERT_TRUE(courier.send(1, [forgotten] { ++*forgotten; }));
  courier.send_at(system_clock().steady() + std::chrono::hours(1), [forgotten] { ++*forgotten; });
  courier.stop();
  EXPECT_TRUE(asked_to_end);
  EXPECT_EQ(*forgotten, 0);
  EXPECT_EQ(forgotten.use_count(), 1);  // errands are gone when it returns
}

TEST(Courier, AnErrandMayHaveTheLastHoldOnIt) {
  Gate gate;
  auto courier = std::make_shared<Courier>();
  courier->send_always(gate.errand());
  courier->send_always([courier] {});
  courier.reset();
  gate.open();
  EXPECT_TRUE(eventually([] { return threads_of_kiln() == 0; }));
}

TEST(Courier, AForkedChildHasNoErrandsOfItsParentAndStartsAnew) {
  if (test::kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer lets no child of fork start a thread";
  Gate gate;
  Courier courier;
  courier.send_always(gate.errand());
  courier.send_always([] {});
  test::Forked child([&](const test::Forked::Side& side) {
    bool own = false;
    courier.send_always([&] { own = true; });
    const bool drained = courier.drain(seconds(20));  // the parent's, behind the gate, would not let it
    courier.stop();
    side.say(drained && own ? "fine" : "not so");
  });
  EXPECT_EQ(child.line(), "fine");
  EXPECT_EQ(child.exit_code(), 0);
  EXPECT_FALSE(courier.drain(nanoseconds(0)));
  gate.open();
  EXPECT_TRUE(courier.drain(seconds(20)));
}

}  // namespace
}  // namespace kiln
