// SPDX-License-Identifier: Apache-2.0
#include "remote/jitter.hpp"

#include "base/process/system_info.hpp"

namespace kiln {

Jitter Jitter::from_random_seed() { return Jitter(random_number()); }

std::string random_hex_id() { return random_digits() + random_digits(); }

// SplitMix64: one addition and three mixing steps; every seed is good.
double Jitter::unit() {
  state_ += 0x9e3779b97f4a7c15U;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  mixed ^= mixed >> 31U;
  return static_cast<double>(mixed >> 11U) * 0x1.0p-53;
}

}  // namespace kiln
