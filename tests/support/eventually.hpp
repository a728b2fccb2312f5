#pragma once

#include <chrono>

#include "base/clock.hpp"
#include "support/patience.hpp"

namespace kiln::test {

/// Whether something comes to hold, within the limit, of real time. For what happens on other threads and has no
/// condition to wait for.
template <class Predicate>
bool eventually(Predicate holds, std::chrono::nanoseconds limit = kPatience) {
  const std::chrono::nanoseconds end = system_clock().steady() + limit;
  while (!holds()) {
    if (system_clock().steady() > end) return false;
    system_clock().sleep(std::chrono::microseconds(50));
  }
  return true;
}

}  // namespace kiln::test
