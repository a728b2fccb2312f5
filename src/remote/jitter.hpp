// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace kiln {

/// A random number generator that spreads waits, so that hosts that started together do not send requests together. Its
/// numbers depend only on the seed, which a simulation chooses and a host takes from the system. Not for secrets. Not
/// thread-safe.
class Jitter {
 public:
  explicit Jitter(std::uint64_t seed) : state_(seed) {}
  /// Returns a generator with a random seed.
  static Jitter from_random_seed();

  /// Returns a number in [0, 1).
  double unit();
  /// Returns `time` times a random factor between (1 - part) and (1 + part).
  std::chrono::nanoseconds around(std::chrono::nanoseconds time, double part) {
    const double factor = 1 + part * (2 * unit() - 1);
    return std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(time.count()) * factor));
  }

 private:
  std::uint64_t state_;
};

/// Returns a unique id of 32 random hexadecimal digits.
std::string random_hex_id();

}  // namespace kiln
