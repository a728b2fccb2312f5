// SPDX-License-Identifier: Apache-2.0
#include "remote/background_queue.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/fakes/stepped_clock.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/forked.hpp"
#include "support/processes/process_info.hpp"
#include "support/processes/sanitizer.hpp"

namespace kiln {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using test::eventually;
using test::threads_of_kiln;

// Blocks the queue until `open` or the destructor is called.
class Gate {
 public:
  ~Gate() { open(); }
  void open() {
    if (!std::exchange(opened_, true)) promise_.set_value();
  }
  std::function<void()> task() {
    return [future = promise_.get_future().share()] { future.wait_for(seconds(20)); };
  }

 private:
  std::promise<void> promise_;
  bool opened_ = false;
};

TEST(BackgroundQueue, StartsOneThreadWithFirstTask) {
  BackgroundQueue background_queue;
  EXPECT_TRUE(background_queue.drain(seconds(1)));
  EXPECT_TRUE(eventually([] { return threads_of_kiln() == 0; }));
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(background_queue.try_enqueue(1, [] {}));
  background_queue.enqueue_at(nanoseconds(0), [] {});
  ASSERT_TRUE(background_queue.drain(seconds(20)));
  EXPECT_EQ(threads_of_kiln(), 1u);
  background_queue.stop();
  EXPECT_TRUE(eventually([] { return threads_of_kiln() == 0; }));  // the kernel removes a thread a little later
}

TEST(BackgroundQueue, RunsTasksInFifoOrder) {
  std::vector<int> done;
  BackgroundQueue background_queue;
  for (int i = 0; i < 100; ++i) {
    const auto task = [&done, i] { done.push_back(i); };
    if (i % 3 == 0) {
      background_queue.enqueue(task);
    } else {
      ASSERT_TRUE(background_queue.try_enqueue(10, task));
    }
  }
  ASSERT_TRUE(background_queue.drain(seconds(20)));
  ASSERT_EQ(done.size(), 100u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(BackgroundQueue, LimitsTasksButNeverDropsReleases) {
  FleetPolicy policy;
  policy.max_pending_uploads = 3;
  Gate gate;
  BackgroundQueue background_queue(policy);
  ASSERT_TRUE(background_queue.try_enqueue(1, gate.task()));
  EXPECT_TRUE(background_queue.try_enqueue(1, [] {}));
  EXPECT_TRUE(background_queue.try_enqueue(1, [] {}));
  EXPECT_FALSE(background_queue.try_enqueue(1, [] { ADD_FAILURE() << "a dropped task ran"; }));
  bool released = false;
  background_queue.enqueue([&] { released = true; });
  gate.open();
  ASSERT_TRUE(background_queue.drain(seconds(20)));
  EXPECT_TRUE(released);
  EXPECT_TRUE(background_queue.try_enqueue(1, [] {}));  // there is capacity again
}

TEST(BackgroundQueue, LimitsBytes) {
  FleetPolicy policy;
  policy.max_pending_upload_bytes = 100;
  Gate gate;
  BackgroundQueue background_queue(policy);
  EXPECT_FALSE(background_queue.try_enqueue(101, [] {}));
  EXPECT_FALSE(background_queue.try_enqueue(~std::uint64_t{0}, [] {}));
  ASSERT_TRUE(background_queue.try_enqueue(60, gate.task()));
  EXPECT_FALSE(background_queue.try_enqueue(41, [] {}));
  EXPECT_TRUE(background_queue.try_enqueue(40, [] {}));
  gate.open();
  ASSERT_TRUE(background_queue.drain(seconds(20)));
  EXPECT_TRUE(background_queue.try_enqueue(100, [] {}));
}

TEST(BackgroundQueue, RunsScheduledTaskBeforeQueuedTasks) {
  test::SteppedClock clock;
  Gate gate;
  std::vector<std::string> done;
  BackgroundQueue background_queue({}, clock);
  background_queue.enqueue_at(clock.steady() + seconds(2), [&] { done.push_back("second"); });
  background_queue.enqueue_at(clock.steady() + seconds(1), [&] { done.push_back("first"); });
  background_queue.enqueue([&] { done.push_back("at once"); });
  ASSERT_TRUE(background_queue.drain(seconds(20)));  // the clock is stopped: scheduled tasks are not waited for
  EXPECT_EQ(done, std::vector<std::string>{"at once"});
  background_queue.enqueue(gate.task());
  background_queue.enqueue([&] {
    system_clock().sleep(milliseconds(5));  // `drain` must not mistake a scheduled task for this one
    done.push_back("behind");
  });
  clock.advance(seconds(3));
  gate.open();
  ASSERT_TRUE(background_queue.drain(seconds(20)));
  EXPECT_EQ(done, (std::vector<std::string>{"at once", "first", "second", "behind"}));
}

TEST(BackgroundQueue, DrainTimesOut) {
  Gate gate;
  BackgroundQueue background_queue;
  background_queue.enqueue(gate.task());
  EXPECT_FALSE(background_queue.drain(milliseconds(1)));
  gate.open();
}

TEST(BackgroundQueue, StopWaitsForQueuedTasks) {
  int done = 0;
  BackgroundQueue background_queue;
  for (int i = 0; i < 50; ++i) background_queue.enqueue([&] { ++done; });
  background_queue.stop();
  EXPECT_EQ(done, 50);
  EXPECT_TRUE(background_queue.is_stopping());
  EXPECT_FALSE(background_queue.try_enqueue(1, [] { ADD_FAILURE() << "a task ran after the end"; }));
  background_queue.enqueue([] { ADD_FAILURE() << "a task ran after the end"; });
  background_queue.stop();  // a second call is harmless
}

TEST(BackgroundQueue, StopDropsLateTasksAndSignalsRunningTask) {
  FleetPolicy policy;
  policy.drain_timeout = milliseconds(10);
  BackgroundQueue background_queue(policy);
  bool asked_to_end = false;
  background_queue.enqueue([&] { asked_to_end = eventually([&] { return background_queue.is_stopping(); }); });
  const auto forgotten = std::make_shared<int>(0);
  ASSERT_TRUE(background_queue.try_enqueue(1, [forgotten] { ++*forgotten; }));
  background_queue.enqueue_at(system_clock().steady() + std::chrono::hours(1), [forgotten] { ++*forgotten; });
  background_queue.stop();
  EXPECT_TRUE(asked_to_end);
  EXPECT_EQ(*forgotten, 0);
  EXPECT_EQ(forgotten.use_count(), 1);  // tasks are destroyed when it returns
}

TEST(BackgroundQueue, TaskCanHoldLastReference) {
  Gate gate;
  auto background_queue = std::make_shared<BackgroundQueue>();
  background_queue->enqueue(gate.task());
  background_queue->enqueue([background_queue] {});
  background_queue.reset();
  gate.open();
  EXPECT_TRUE(eventually([] { return threads_of_kiln() == 0; }));
}

TEST(BackgroundQueue, ForkedChildStartsWithEmptyQueue) {
  if (test::kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer does not support threads in forked children";
  Gate gate;
  BackgroundQueue background_queue;
  background_queue.enqueue(gate.task());
  background_queue.enqueue([] {});
  test::Forked child([&](const test::Forked::Side& side) {
    bool own = false;
    background_queue.enqueue([&] { own = true; });
    const bool drained =
        background_queue.drain(seconds(20));  // the parent's tasks, which the gate blocks, would time out
    background_queue.stop();
    side.say(drained && own ? "fine" : "failed");
  });
  EXPECT_EQ(child.line(), "fine");
  EXPECT_EQ(child.exit_code(), 0);
  EXPECT_FALSE(background_queue.drain(nanoseconds(0)));
  gate.open();
  EXPECT_TRUE(background_queue.drain(seconds(20)));
}

}  // namespace
}  // namespace kiln
