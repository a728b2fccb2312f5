#pragma once

#include <string>
#include <utility>

#include "base/codec.hpp"
#include "base/hash.hpp"

namespace kiln::fuzz {

/// A file whose head ends with the checksum of all that follows it, with that made right: what a parser looks at behind
/// its checksum is seldom reached otherwise. Files too short for a head stay as they are.
inline std::string with_right_sum(std::string file) {
  constexpr std::size_t kSumAt = 12;
  constexpr std::size_t kHead = kSumAt + 8;
  if (file.size() < kHead) return file;
  Writer sum;
  sum.u64(xxh3(as_bytes(std::string_view(file).substr(kHead))));
  file.replace(kSumAt, sum.bytes().size(), sum.bytes());
  return file;
}

}  // namespace kiln::fuzz
