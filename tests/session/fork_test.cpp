// SPDX-License-Identifier: Apache-2.0
// A process that forks in the middle of a get: parent and child both finish, and neither blocks the other.
#include <kiln/session.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "cache/local_claims.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/forked.hpp"

namespace {
bool is_child = false;
}
// Memory referenced from the stacks of the parent's threads has no owner in the child, so the leak checker is turned
// off there.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() { return is_child ? 1 : 0; }

namespace kiln {
namespace {

using std::chrono::seconds;

const Unit unit = Unit::cuda("twice", "extern \"C\" __global__ void twice(int* x) { *x *= 2; }").with_entry("twice");
const Target target = Target::sm(80);

SessionOptions options_for(const std::string& cache, EventCallback on_event = {}) {
  SessionOptions options;
  options.settings["cache.dir"] = cache;
  options.on_event = std::move(on_event);
  return options;
}

int exit_of(pid_t child) {
  int status = 0;
  for (int i = 0; i < 6000; ++i) {
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    usleep(10000);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return 255;  // timed out
}

// Runs the child: one get with the inherited session and one with a session of its own.
[[noreturn]] void live_as_child(Session& inherited, const std::string& cache, bool leave_in_order) {
  is_child = true;
  const auto again = inherited.artifact(unit, target, seconds(50));
  const auto own = Session::open(options_for(cache)).value().artifact(unit, target, seconds(50));
  const int code = !again ? 1 : !own ? 2 : again->symbol("twice") == nullptr ? 3 : 0;
  if (leave_in_order) std::exit(code);
  _exit(code);
}

// Every step of a get that misses emits an event, except before the first and after the last one.
const Event::Kind kSteps[] = {Event::Kind::Miss, Event::Kind::Compiled, Event::Kind::Published};

TEST(Fork, FromWorkingThreadAtEveryStepOfGetSucceedsInBothProcesses) {
  for (const Event::Kind step : kSteps) {
    test::TemporaryDirectory cache;
    std::atomic<pid_t> child{0};
    Session* inherited = nullptr;
    Session session = Session::open(options_for(cache.path(), [&](const Event& event) {
                        if (event.kind != step || child != 0) return;
                        const pid_t forked = fork();
                        if (forked == 0) {
                          child = getpid();
                          live_as_child(*inherited, cache.path(), true);
                        }
                        child = forked;
                      })).value();
    inherited = &session;
    const auto artifact = session.artifact(unit, target, seconds(60));
    EXPECT_TRUE(artifact.has_value()) << to_string(step);
    ASSERT_GT(child, 0) << to_string(step);
    EXPECT_EQ(exit_of(child), 0) << to_string(step);
  }
}

TEST(Fork, FromOtherThreadAtEveryStepOfGetSucceedsInBothProcesses) {
  for (const Event::Kind step : kSteps) {
    for (const bool leave_in_order : {true, false}) {
      test::TemporaryDirectory cache;
      std::atomic<bool> reached{false};
      std::atomic<bool> go_on{false};
      Session session = Session::open(options_for(cache.path(), [&](const Event& event) {
                          if (event.kind != step || reached.exchange(true)) return;
                          while (!go_on) std::this_thread::yield();
                        })).value();
      std::thread getter([&] { EXPECT_TRUE(session.artifact(unit, target, seconds(60)).has_value()); });
      while (!reached) std::this_thread::yield();
      const pid_t child = fork();
      if (child == 0) live_as_child(session, cache.path(), leave_in_order);
      // The child must not depend on the progress of its parent, except that one of them compiles: it waits for a
      // claim.
      go_on = true;
      EXPECT_EQ(exit_of(child), 0) << to_string(step) << (leave_in_order ? " exit" : " _exit");
      getter.join();
    }
  }
}

TEST(Fork, AfterGetGivesChildWorkingSession) {
  test::TemporaryDirectory cache;
  Session session = Session::open(options_for(cache.path())).value();
  ASSERT_TRUE(session.artifact(unit, target, seconds(60)).has_value());
  const pid_t child = fork();
  if (child == 0) live_as_child(session, cache.path(), true);
  EXPECT_EQ(exit_of(child), 0);
  EXPECT_TRUE(session.artifact(unit, target, seconds(60)).has_value());
}

TEST(Fork, KilledParentLeavesNoKeyLockedByChild) {
  test::TemporaryDirectory cache;
  test::Forked parent([&](test::Forked::Side side) {
    Session session = Session::open(options_for(cache.path(), [&](const Event& event) {
                        if (event.kind != Event::Kind::Compiled) return;  // the claim is held at this event
                        const pid_t forked = fork();
                        while (forked == 0) pause();
                        side.say(std::to_string(forked));
                        while (true) pause();
                      })).value();
    (void)session.artifact(unit, target, seconds(60));
  });
  const std::string grandchild = parent.line();
  ASSERT_FALSE(grandchild.empty());
  parent.kill_now();
  // The next process would wait for up to thirty seconds if the grandchild held the claim.
  const auto start = std::chrono::steady_clock::now();
  Session session = Session::open(options_for(cache.path())).value();
  EXPECT_TRUE(session.artifact(unit, target, seconds(60)).has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(20));
  kill(static_cast<pid_t>(std::stol(grandchild)), SIGKILL);
}

}  // namespace
}  // namespace kiln
