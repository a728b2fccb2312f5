// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/result.hpp>

namespace kiln::jit {

/// Runs a command as a child process. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on; `publish` is called on SIGUSR1
/// and every `interval` seconds (0 means never) while the command runs. Returns its exit code, or 128 and the number of
/// the signal that ended it.
Result<int> run_command(const std::vector<std::string>& command,
                        const std::vector<std::pair<std::string, std::string>>& variables, unsigned interval,
                        const std::function<void()>& publish);

}  // namespace kiln::jit
