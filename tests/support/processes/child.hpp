// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grp.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace kiln::test {

/// Runs `work` in a forked child and returns its exit code, or 128 plus the signal. The child must not use gtest
/// assertions; it reports errors by its exit code.
inline int run_in_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Switches to a user id that is unknown on this machine, without a name, home or groups. Only root can do this.
inline bool become(uid_t user) {
  return setgroups(0, nullptr) == 0 && setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0;
}

}  // namespace kiln::test
