// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "worker/sandbox.hpp"

namespace kiln {

/// Calls NVRTC's function that writes its bundled headers into a directory; see `BundledHeaders`. The process can write
/// only there if the sandbox is enabled. Returns the exit code.
int install_headers(const std::string& library, const std::string& directory, const SandboxSettings& settings);

}  // namespace kiln
