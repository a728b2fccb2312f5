// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox_filter.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>

#include "support/processes/child.hpp"

namespace kiln::test {
namespace {

// pidfd_send_signal, io_uring_setup, io_uring_enter, io_uring_register, open_tree, move_mount, fsopen, fsconfig,
// fsmount, fspick, pidfd_getfd, process_madvise, mount_setattr, quotactl_fd, process_mrelease, fchmodat2, setxattrat,
// removexattrat, open_tree_attr, and file_setattr.
constexpr int kNewerThanTheHeaders[] = {424, 425, 426, 427, 428, 429, 430, 431, 432, 433,
                                        438, 440, 442, 443, 448, 452, 463, 466, 467, 469};

TEST(SandboxFilter, DeniesCallsThatOlderKernelHeadersLack) {
  if (!has_system_call_filter()) GTEST_SKIP() << "this kernel or container has no seccomp filters";
  const int denied = run_in_child([] {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !filter_system_calls(false)) return 0;
    int count = 0;
    for (const int number : kNewerThanTheHeaders) {
      errno = 0;
      if (syscall(number, -1, nullptr, -1, nullptr, -1, 0) == -1 && errno == EPERM) ++count;
    }
    return count;
  });
  EXPECT_EQ(denied, static_cast<int>(std::size(kNewerThanTheHeaders)));
}

}  // namespace
}  // namespace kiln::test
