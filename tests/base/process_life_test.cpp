#include "base/process_life.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/child.hpp"

namespace kiln {
namespace {

struct Counting final : ProcessListener {
  void at_exit() override { ++exits; }
  void in_child() override { ++children; }
  int exits = 0;
  int children = 0;
};

TEST(ProcessLife, TellsTheChildOfAForkAndNotItsParent) {
  Counting counting;
  add_listener(counting);
  EXPECT_EQ(test::run_in_child([&] { return counting.children; }), 1);
  EXPECT_EQ(counting.children, 0);
  remove_listener(counting);
  EXPECT_EQ(test::run_in_child([&] { return counting.children; }), 0);
}

TEST(ProcessLife, AChildIsOfAnotherGenerationThanItsParent) {
  const unsigned here = fork_generation();
  EXPECT_EQ(test::run_in_child([&] { return fork_generation() == here + 1 ? 0 : 1; }), 0);
  EXPECT_EQ(fork_generation(), here);
}

// The child of a fork that listens again is told of its own end; what it inherited is not.
TEST(ProcessLife, TellsOfTheEndOnlyThoseWhoListenInThisProcess) {
  static Counting inherited;
  static Counting own;
  add_listener(inherited);
  EXPECT_EQ(test::run_in_child([] {
              add_listener(own);
              // The last to be registered and so the first to be run: both others come after it.
              std::exit([] {
                std::atexit([] { _exit(inherited.exits == 0 ? 0 : 1); });
                return 0;
              }());
              return 2;
            }),
            0);
  remove_listener(inherited);
}

TEST(ProcessLife, ALibraryThatWasOpenedBeforeAForkIsNotForTheChild) {
  OpenedOnce opened;
  EXPECT_TRUE(opened.check("libx.so").ok());
  EXPECT_TRUE(opened.check("libx.so").ok());
  EXPECT_EQ(test::run_in_child([&] { return opened.check("libx.so").ok() ? 1 : 0; }), 0);
  EXPECT_EQ(test::run_in_child([] { return OpenedOnce().check("libx.so").ok() ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace kiln
