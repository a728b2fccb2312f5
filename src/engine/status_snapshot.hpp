// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include <kiln/status.hpp>

namespace kiln {

/// A snapshot of a session with a bounded number of units, for monitoring. The totals cover all units.
struct StatusSnapshot {
  struct UnitSnapshot {
    UnitStatus status;        ///< `ms` of a running unit is the time since it started
    std::size_t waiters = 0;  ///< threads that wait for it
  };
  SessionStatus totals;             ///< totals of all units; the list is empty
  std::size_t waiters = 0;          ///< waiting threads of all units
  std::vector<UnitSnapshot> units;  ///< running, then waited for, failed, queued, and most recently ended
};

}  // namespace kiln
