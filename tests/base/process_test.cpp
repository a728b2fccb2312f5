// SPDX-License-Identifier: Apache-2.0
#include "base/process/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/process/dynamic_library.hpp"

namespace kiln::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Result<Process> shell(const std::string& command, std::vector<std::string> environment = {}, int out = -1) {
  Process::SpawnOptions start{{"/bin/sh", "-c", command}, std::move(environment), {}};
  if (out >= 0) start.descriptors.emplace_back(out, 1);
  return Process::spawn(start);
}

TEST(Process, ReportsExitStatus) {
  EXPECT_TRUE(shell("exit 0")->wait(seconds(20))->succeeded());
  const auto code = shell("exit 7")->wait(seconds(20));
  EXPECT_EQ(code->code, 7);
  EXPECT_FALSE(code->succeeded());
  EXPECT_EQ(shell("kill -TERM $$")->wait(seconds(20))->signal, SIGTERM);
}

TEST(Process, WaitTimesOutWithoutPidfd) {
  std::vector<int> taken;
  for (int fd = 0; (fd = fcntl(1, F_DUPFD_CLOEXEC, 3)) >= 0;) taken.push_back(fd);
  auto child = shell("exec sleep 30");
  for (const int fd : taken) close(fd);
  ASSERT_TRUE(child.has_value());
  ASSERT_EQ(child->pidfd(), -1);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(child->wait(milliseconds(0)).has_value());
  EXPECT_FALSE(child->wait(milliseconds(50)).has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(20));
  child->kill();
  EXPECT_EQ(child->wait(seconds(20))->signal, SIGKILL);
}

TEST(Process, WaitTimesOutAndKillWorks) {
  auto child = shell("exec sleep 30");
  ASSERT_TRUE(child.has_value());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(child->wait(milliseconds(50)).has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(20));
  child->kill();
  EXPECT_EQ(child->wait(seconds(20))->signal, SIGKILL);
  EXPECT_EQ(child->wait(seconds(20))->signal, SIGKILL);  // and returns the same again
}

TEST(Process, MoveKeepsExitStatus) {
  auto first = shell("exit 3");
  auto second = shell("exec sleep 30");
  ASSERT_TRUE(first.has_value() && second.has_value());
  ASSERT_EQ(first->wait(seconds(20))->code, 3);
  const pid_t ended = first->id();
  const pid_t running = second->id();
  std::swap(*first, *second);
  EXPECT_EQ(first->id(), running);
  EXPECT_FALSE(first->wait(milliseconds(0)).has_value());
  EXPECT_EQ(second->id(), ended);
  EXPECT_EQ(second->wait(seconds(20))->code, 3) << "the exit status is moved too";
}

TEST(Process, DestructorKillsChild) {
  pid_t id = -1;
  {
    auto child = shell("exec sleep 30");
    id = child->id();
    EXPECT_EQ(kill(id, 0), 0);
  }
  EXPECT_EQ(kill(id, 0), -1);
}

TEST(Process, GetsEnvironmentDescriptorsAndOwnSession) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  auto child =
      shell("echo \"$A,$HOME\"; ps -o sid= -p $$ 2>/dev/null || cut -d' ' -f6 /proc/$$/stat", {"A=b"}, ends[1]);
  close(ends[1]);
  ASSERT_TRUE(child.has_value());
  EXPECT_TRUE(child->wait(seconds(20))->succeeded());
  char text[100] = {};
  ASSERT_GT(read(ends[0], text, sizeof text - 1), 0);
  close(ends[0]);
  const std::string said = text;
  EXPECT_EQ(said.substr(0, said.find('\n')), "b,");
  EXPECT_NE(said.find(std::to_string(child->id())), std::string::npos) << said;
}

TEST(Process, StartFailureNamesProgram) {
  const auto child = Process::spawn({{"/no/such/program"}, {}, {}});
  ASSERT_FALSE(child.has_value());
  EXPECT_NE(child.error().message.find("/no/such/program"), std::string::npos);
}

void in_this_program() {}

TEST(PathOfAddress, IsTheProgramAndNotItsFirstArgument) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  ASSERT_EQ(path_of_address(reinterpret_cast<const void*>(&in_this_program)), program);
  if (std::getenv("KILN_TEST_ARGUMENT") != nullptr) return;
  // The same test again, started under the name of another program.
  const std::string command = "exec -a /bin/sh '" + program + "' --gtest_filter=PathOfAddress.*";
  const Process::SpawnOptions start{{"/bin/bash", "-c", command}, {"KILN_TEST_ARGUMENT=1"}, {}};
  Result<Process> again = Process::spawn(start);
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->wait(seconds(20))->succeeded());
}

}  // namespace
}  // namespace kiln::test
