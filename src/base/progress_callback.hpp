// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace kiln {

/// A callback that reports the progress of a long operation: `done` of `all` steps. Null disables reporting.
using ProgressCallback = std::function<void(std::size_t done, std::size_t all)>;

}  // namespace kiln
