// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/result.hpp>

namespace kiln::jit {

/// Runs a command as a child process and passes on SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGUSR2. While it runs, another
/// thread calls `publish` on SIGUSR1 and every `interval` seconds (0 means never). Returns the exit code of the
/// command, or 128 plus the number of the signal that ended it.
Result<int> run_command(const std::vector<std::string>& command,
                        const std::vector<std::pair<std::string, std::string>>& variables, unsigned interval,
                        const std::function<void()>& publish);

}  // namespace kiln::jit
