#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compile/file_recorder.hpp"

namespace kiln {

/// What a compile is to do with a precompiled header, besides compiling.
struct PchOrder {
  enum class Mode : std::uint8_t { None = 0, Create = 1, Use = 2 };
  Mode mode = Mode::None;
  std::string path;            ///< absolute; where it is, or where it is to be written
  std::uint64_t size = 0;      ///< Use: what the file must be like
  std::uint64_t checksum = 0;  ///< likewise: XXH3
};

/// What it did.
struct PchReport {
  enum class Outcome : std::uint8_t {
    None = 0,         ///< nothing was ordered, or the unit was refused
    Created = 1,      ///< it was written
    Used = 2,         ///< the headers were not read again
    Refused = 3,      ///< it could not be used, or not be made: the unit was compiled in full
    Unavailable = 4,  ///< this worker could neither make nor use any
  };
  Outcome outcome = Outcome::None;
  std::string reason;                     ///< Refused and Unavailable
  std::uint64_t size = 0;                 ///< Created
  std::uint64_t checksum = 0;             ///< Created
  std::vector<Observation> observations;  ///< Created: what the compiler had asked by the time it was written
};

}  // namespace kiln
