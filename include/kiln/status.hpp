// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/export.hpp>
#include <kiln/key.hpp>

namespace kiln {

/// The status of one unit for one target.
struct UnitStatus {
  enum class State : unsigned char { Queued, Running, Ready, Failed, Cancelled };
  std::string unit;
  std::string kind;
  std::string target;
  State state = State::Queued;
  Origin origin = Origin::Compiled;  ///< tier that had the unit, if it is ready
  double ms = 0;                     ///< milliseconds from the start of the work to its end
  std::string error;                 ///< message, if it failed
  std::optional<Digest> identity;    ///< equal for equal units only; empty if it is not computed yet
};
KILN_API const char* to_string(UnitStatus::State state);

/// A snapshot of all units of a session. The counts cover the units in the list, which excludes released units.
struct SessionStatus {
  std::size_t submitted = 0;  ///< all units in the list
  std::size_t compiled = 0;   ///< ready; compiled by this process
  std::size_t cached = 0;     ///< ready; found in a tier
  std::size_t pending = 0;    ///< queued or running
  std::size_t failed = 0;
  std::size_t cancelled = 0;
  double wall_ms = 0;  ///< from the first request to the end of the last work, or to now if units are pending
  std::vector<UnitStatus> units;  ///< in order of submission
  std::size_t released = 0;       ///< units released by `Session::release` since the session was opened
};

}  // namespace kiln
