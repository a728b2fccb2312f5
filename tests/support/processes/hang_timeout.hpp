// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace kiln::test {

/// Time after which a test treats a missing event as a hang. Long, because a shared machine sometimes gives a test only
/// a fifth of a core. Nothing waits this long unless something is broken.
inline constexpr std::chrono::seconds kHangTimeout{240};

}  // namespace kiln::test
