// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/codec.hpp"
#include "base/hash.hpp"

namespace kiln::fuzz {

/// Returns a file whose header ends with the checksum of the rest, with that checksum corrected; otherwise a fuzzer
/// rarely reaches the code after the checksum. Files too short for a header stay unchanged.
inline std::string with_right_sum(std::string file) {
  constexpr std::size_t kSumAt = 12;
  constexpr std::size_t kHead = kSumAt + 8;
  if (file.size() < kHead) return file;
  BinaryWriter sum;
  sum.u64(xxh3(as_bytes(std::string_view(file).substr(kHead))));
  file.replace(kSumAt, sum.bytes().size(), sum.bytes());
  return file;
}

}  // namespace kiln::fuzz
