// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "apps/kiln/selftest/isolated.hpp"

namespace kiln::test {
namespace {

using cli::selftest::run_in_child;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(SelftestIsolation, ReturnsTextOfChild) {
  const std::string large(300'000, 'x');  // more than a pipe holds
  EXPECT_EQ(run_in_child([&] { return large; }, seconds(60)).value(), large);
}

TEST(SelftestIsolation, CrashIsError) {
  const auto crashed = run_in_child(
      []() -> std::string {
        signal(SIGABRT, SIG_DFL);
        raise(SIGABRT);
        return "";
      },
      seconds(60));
  ASSERT_FALSE(crashed.has_value());
  EXPECT_NE(crashed.error().message.find("crashed: signal 6"), std::string::npos) << crashed.error().message;
}

TEST(SelftestIsolation, EndWithoutResultIsError) {
  const auto ended = run_in_child([]() -> std::string { _exit(3); }, seconds(60));
  ASSERT_FALSE(ended.has_value());
  EXPECT_NE(ended.error().message.find("ended by itself"), std::string::npos) << ended.error().message;
}

TEST(SelftestIsolation, HangIsEndedAfterTime) {
  const auto hung = run_in_child(
      []() -> std::string {
        for (;;) pause();
      },
      milliseconds(100));
  ASSERT_FALSE(hung.has_value());
  EXPECT_EQ(hung.error().code, Code::TimedOut) << hung.error().message;
}

}  // namespace
}  // namespace kiln::test
