// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/error.hpp"

namespace kiln::test {

/// Runs a shell command. Returns whether it succeeded.
inline bool run_shell(const std::string& command) {
  return std::system(("(" + command + ") >/dev/null 2>&1").c_str()) ==
         0;  // NOLINT(cert-env33-c): a fixed command of the tests
}

/// Moves the calling thread, and every thread and process that it starts afterwards, into a new mount namespace. Its
/// mounts are removed with the process. Code::Unsupported gives the reason why this is impossible.
inline Status enter_own_mounts() {
  if (geteuid() != 0) return make_error(Code::Unsupported, "mounting needs root");
  static const bool entered =
      unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  if (!entered) return make_error(Code::Unsupported, "mount namespaces are not permitted here");
  return {};
}

/// A mount that the destructor lazily unmounts.
class Mounted {
 public:
  /// `options` and `source` are those of mount(8).
  Mounted(const std::string& options, const std::string& source, std::string directory)
      : directory_(std::move(directory)),
        good_(run_shell("mount " + options + " '" + source + "' '" + directory_ + "'")) {}
  ~Mounted() {
    if (good_) (void)umount2(directory_.c_str(), MNT_DETACH);
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;

  explicit operator bool() const { return good_; }

 private:
  const std::string directory_;
  const bool good_;
};

}  // namespace kiln::test
