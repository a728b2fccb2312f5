#pragma once

#include <chrono>

namespace kiln::test {

/// How long a test waits for what must happen before it calls it a hang. Long, since a machine that others use gives a
/// test no more than a fifth of a core at times; nothing waits for it unless something is broken.
inline constexpr std::chrono::seconds kPatience{240};

}  // namespace kiln::test
