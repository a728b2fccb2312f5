#pragma once

#include <cstddef>
#include <vector>

#include <kiln/status.hpp>

namespace kiln {

/// A session at one moment in a bounded number of units, for those who watch it: the sums are of all.
struct Glance {
  struct Seen {
    UnitStatus status;        ///< `ms` of one that runs: since it began
    std::size_t waiters = 0;  ///< threads that wait for it
  };
  SessionStatus sums;       ///< without its list
  std::size_t waiters = 0;  ///< of all units
  std::vector<Seen> units;  ///< what runs, then what is waited for, has failed, is queued, and has ended last
};

}  // namespace kiln
