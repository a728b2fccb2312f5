// SPDX-License-Identifier: Apache-2.0
#include "base/process/process_lifecycle.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "support/processes/child.hpp"

namespace kiln {
namespace {

struct Counting final : ProcessLifecycleListener {
  void at_exit() override { ++exits; }
  void in_child() override { ++children; }
  int exits = 0;
  int children = 0;
};

TEST(ProcessLife, NotifiesChildOfForkOnly) {
  Counting counting;
  add_process_listener(counting);
  EXPECT_EQ(test::run_in_child([&] { return counting.children; }), 1);
  EXPECT_EQ(counting.children, 0);
  remove_process_listener(counting);
  EXPECT_EQ(test::run_in_child([&] { return counting.children; }), 0);
}

TEST(ProcessLife, ChildHasNewForkGeneration) {
  const unsigned here = fork_generation();
  EXPECT_EQ(test::run_in_child([&] { return fork_generation() == here + 1 ? 0 : 1; }), 0);
  EXPECT_EQ(fork_generation(), here);
}

// A child of fork that adds a listener is notified of its own exit; inherited listeners are not.
TEST(ProcessLife, NotifiesExitOnlyToListenersOfThisProcess) {
  static Counting inherited;
  static Counting own;
  add_process_listener(inherited);
  EXPECT_EQ(test::run_in_child([] {
              add_process_listener(own);
              // Registered last and so run first, before the other two.
              std::exit([] {
                std::atexit([] { _exit(inherited.exits == 0 ? 0 : 1); });
                return 0;
              }());
              return 2;
            }),
            0);
  remove_process_listener(inherited);
}

// A listener that ends its own thread, as an engine does, while that thread adds and removes another listener, as a
// callback can.
struct EndsItsThread final : ProcessLifecycleListener {
  void at_exit() override {
    if (!thread.joinable()) return;
    stopping = true;
    thread.join();
  }
  void in_child() override {}
  std::atomic<bool> stopping{false};
  std::thread thread;
};

TEST(ProcessLife, ListenersCanChangeDuringExitNotification) {
  static EndsItsThread ending;
  static Counting other;
  EXPECT_EQ(test::run_in_child([] {
              add_process_listener(ending);
              add_process_listener(other);
              ending.thread = std::thread([] {
                while (!ending.stopping) std::this_thread::yield();
                Counting late;
                add_process_listener(late);
                remove_process_listener(late);
                remove_process_listener(other);
              });
              alarm(20);  // SIGALRM ends a process that hangs
              std::atexit([] { _exit(process_is_ending() && other.exits == 0 ? 0 : 1); });
              reregister_exit_handler();
              std::exit(2);
              return 3;
            }),
            0);
}

TEST(ProcessLife, RemoveWaitsForRunningNotification) {
  struct Slow final : ProcessLifecycleListener {
    void at_exit() override {
      if (reported) return;
      begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      reported = true;
    }
    void in_child() override {}
    std::atomic<bool> begun{false};
    std::atomic<bool> reported{false};
  };
  static Slow slow;
  static std::thread remover;
  static std::atomic<bool> waited{false};
  EXPECT_EQ(test::run_in_child([] {
              add_process_listener(slow);
              remover = std::thread([] {
                while (!slow.begun) std::this_thread::yield();
                remove_process_listener(slow);
                waited = slow.reported.load();
              });
              alarm(20);
              std::atexit([] {
                remover.join();
                _exit(waited ? 0 : 1);
              });
              reregister_exit_handler();
              std::exit(2);
              return 3;
            }),
            0);
}

TEST(ProcessLife, LibraryOpenedBeforeForkIsRejectedInChild) {
  ForkGuard opened;
  EXPECT_TRUE(opened.check("libx.so").has_value());
  EXPECT_TRUE(opened.check("libx.so").has_value());
  EXPECT_EQ(test::run_in_child([&] { return opened.check("libx.so").has_value() ? 1 : 0; }), 0);
  EXPECT_EQ(test::run_in_child([] { return ForkGuard().check("libx.so").has_value() ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace kiln
