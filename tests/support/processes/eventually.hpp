// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "base/clock.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {

/// Returns whether a predicate becomes true within the limit of real time. For state of other threads without a
/// condition variable to wait for.
template <class Predicate>
bool eventually(Predicate holds, std::chrono::nanoseconds timeout = kHangTimeout) {
  const std::chrono::nanoseconds end = system_clock().steady() + timeout;
  while (!holds()) {
    if (system_clock().steady() > end) return false;
    system_clock().sleep(std::chrono::microseconds(50));
  }
  return true;
}

}  // namespace kiln::test
