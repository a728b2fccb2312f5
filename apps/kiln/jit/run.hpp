// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/result.hpp>

namespace kiln::jit {

/// How a command ended.
struct CommandEnd {
  int exit_code = 0;           ///< of the command, or 128 plus the number of the signal that ended it
  std::optional<Error> error;  ///< if it did not start: the exit code is then 127 if it was not found, otherwise 126
};

/// Blocks SIGUSR1 until this process ends, and returns the mask before. The signal asks for a publication: one that
/// comes before the command starts waits for it, and one that comes after its end has no effect. Call it before threads
/// start.
sigset_t block_publish_signal();

/// Runs a command as a child process with the signal mask `mask`, and passes on SIGINT, SIGTERM, SIGHUP, SIGQUIT and
/// SIGUSR2. While it runs, another thread calls `publish` on SIGUSR1 and every `interval` seconds (0 means never). When
/// it has ended, these signals end this process at once with the exit code of the command; SIGUSR2 is ignored.
CommandEnd run_command(const std::vector<std::string>& command, const sigset_t& mask,
                       const std::vector<std::pair<std::string, std::string>>& variables, unsigned interval,
                       const std::function<void()>& publish);

}  // namespace kiln::jit
