#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace kiln {

/// Spreads waits, so that hosts that began together do not ask together. A value; its numbers depend on the seed alone,
/// which a simulation chooses and a host takes from the system. Not for secrets.
class Jitter {
 public:
  explicit Jitter(std::uint64_t seed) : state_(seed) {}
  /// One that nobody else has.
  static Jitter of_this_process();

  /// In [0, 1).
  double unit();
  /// Between (1 - part) and (1 + part) times `time`.
  std::chrono::nanoseconds around(std::chrono::nanoseconds time, double part) {
    const double factor = 1 + part * (2 * unit() - 1);
    return std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(time.count()) * factor));
  }

 private:
  std::uint64_t state_;
};

/// 32 hexadecimal digits that nobody else has.
std::string unique_digits();

}  // namespace kiln
