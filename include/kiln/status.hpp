#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/export.hpp>
#include <kiln/key.hpp>

namespace kiln {

/// What has become of one unit for one target.
struct UnitStatus {
  enum class State : unsigned char { Queued, Running, Ready, Failed, Cancelled };
  std::string unit;
  std::string kind;
  std::string target;
  State state = State::Queued;
  Origin origin = Origin::Compiled;  ///< of one that is ready: which tier had it
  double ms = 0;                     ///< from the start of the work on it to its end
  std::string error;                 ///< of one that failed
  std::optional<Digest> identity;    ///< Unit::identity, where it has been computed: units may share a name
};
KILN_API const char* to_string(UnitStatus::State state);

/// All units of a session at one moment. The sums are those of the list.
struct SessionStatus {
  std::size_t submitted = 0;
  std::size_t compiled = 0;  ///< ready, and a compiler of this process made it
  std::size_t found = 0;     ///< ready, and a tier had it
  std::size_t pending = 0;   ///< queued or running
  std::size_t failed = 0;
  std::size_t cancelled = 0;
  double wall_ms = 0;  ///< from the first request to the end of the last work, or to now where some is pending
  std::vector<UnitStatus> units;  ///< in the order in which they were submitted
};

}  // namespace kiln
