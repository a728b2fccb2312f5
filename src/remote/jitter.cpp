// SPDX-License-Identifier: Apache-2.0
#include "remote/jitter.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <cstdio>

namespace kiln {
namespace {

std::uint64_t random_number() {
  std::uint64_t number = 0;
  // If the kernel has no random bytes yet, processes still differ by process id and time.
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    number = (static_cast<std::uint64_t>(getpid()) << 40U) ^
             static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  return number;
}

}  // namespace

Jitter Jitter::from_random_seed() { return Jitter(random_number()); }

std::string random_hex_id() {
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(random_number()),
                static_cast<unsigned long long>(random_number()));
  return digits;
}

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
