// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/backend_factory.hpp"

namespace kiln {

/// Returns the backend of a kind of units. Returns null for other kinds, and for the kinds of CUDA: "cuda", "cccl",
/// "link" and "command" share NVRTC, workers and precompiled headers, so that the session creates their compilers.
/// Thread-safe.
const BackendFactory* find_backend(const std::string& kind);

/// Adds a backend to those of this process. kiln's own are in the table; a test adds others. A kind that the table has
/// cannot be replaced. The backend must live until the process ends. Thread-safe.
void add_backend(const BackendFactory& backend);

}  // namespace kiln
