// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/child.hpp"

namespace kiln::test {

/// A fixture with two real user ids in addition to root: a victim, who runs kiln, and an attacker, another user of the
/// host. Each has a home directory of mode 0700. Both can write to `shared()`. Not thread-safe. Skipped without root.
class TwoUsers : public testing::Test {
 protected:
  static constexpr uid_t kVictim = 61'001;
  static constexpr uid_t kAttacker = 61'002;

  /// The output of a program (both streams) and its exit code, or 128 plus the signal.
  struct Ran {
    int code = -1;
    std::string output;
  };

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to run as two other users";
    ASSERT_EQ(chmod(room_.path().c_str(), 0755), 0);
    for (const uid_t user : {kVictim, kAttacker}) make_directory(home(user), 0700, user);
    make_directory(shared(), 0777, kVictim);
    make_directory(room_.path("bin"), 0755, 0);
  }

  /// Returns a directory that every user can enter.
  const std::string& room() const { return room_.path(); }
  std::string home(uid_t user) const { return room_.path("home-" + std::to_string(user)); }
  /// Returns a directory of the victim that every user can write.
  std::string shared() const { return room_.path("shared"); }

  static void make_directory(const std::string& path, mode_t mode, uid_t owner) {
    ASSERT_TRUE(mkdir(path.c_str(), mode) == 0 || errno == EEXIST) << path;
    ASSERT_EQ(chmod(path.c_str(), mode), 0) << path;
    ASSERT_EQ(lchown(path.c_str(), owner, owner), 0) << path;
  }
  static void make_file(const std::string& path, const std::string& bytes, mode_t mode, uid_t owner) {
    write_text(path, bytes);
    ASSERT_EQ(chmod(path.c_str(), mode), 0) << path;
    ASSERT_EQ(lchown(path.c_str(), owner, owner), 0) << path;
  }

  /// Runs `work` as this user in a child process. Returns its exit code, or 128 plus the signal. GoogleTest assertions
  /// do not work there.
  int as(uid_t user, const std::function<int()>& work) const {
    return run_in_child([&] {
      if (!become(user) || chdir(home(user).c_str()) != 0) return 99;
      for (const char* name : {"XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"}) unsetenv(name);
      setenv("HOME", home(user).c_str(), 1);
      setenv("TMPDIR", home(user).c_str(), 1);
      return work();
    });
  }

  /// Copies a program, which may be in a directory that only root can enter, to a directory that every user can enter.
  /// Returns its path. kiln finds kiln-worker next to itself, so a test that needs both publishes both.
  std::string publish(const std::string& program) const {
    const std::filesystem::path from(program);
    const std::string to = room_.path("bin/" + from.filename().string());
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::skip_existing);
    EXPECT_EQ(chmod(to.c_str(), 0755), 0);
    return to;
  }

  /// Runs a program as this user with only HOME, PATH, TMPDIR and `variables` in its environment.
  Ran run(uid_t user, const std::vector<std::string>& command,
          const std::map<std::string, std::string>& variables = {}) const {
    Ran ran;
    ran.code = as(user, [&] {
      const std::string log = home(user) + "/.output";
      const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
      const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) return 98;
      std::vector<std::string> entries{"HOME=" + home(user), "PATH=/usr/local/cuda/bin:/usr/bin:/bin",
                                       "TMPDIR=" + home(user)};
      for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
      std::vector<char*> environment;
      for (std::string& entry : entries) environment.push_back(entry.data());
      environment.push_back(nullptr);
      std::vector<char*> arguments;
      for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
      arguments.push_back(nullptr);
      execve(arguments[0], arguments.data(), environment.data());
      return 97;
    });
    ran.output = read_text(home(user) + "/.output");
    return ran;
  }

 private:
  TemporaryDirectory room_;
};

}  // namespace kiln::test
