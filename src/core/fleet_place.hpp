// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace kiln {

/// The place in a queue of background requests at which a host of a fleet starts. Hosts that start together then ask
/// servers for different keys and compile different units first. A host always has the same place, so that repeated
/// requests keep their order. A value type.
class FleetPlace {
 public:
  /// The front of the queue, for hosts without a fleet.
  FleetPlace() = default;
  /// `part` is the part of the queue before the place, from 0 to less than 1.
  explicit FleetPlace(double part) : part_(part) {}
  /// Returns the place of the host with this identity.
  static FleetPlace of_host(const std::string& identity);

  /// Returns the position of the first request in a queue of `size` requests. A host takes the requests from there to
  /// the end, then starts again in the rest of the queue.
  std::size_t first(std::size_t size) const {
    const auto position = static_cast<std::size_t>(part_ * static_cast<double>(size));
    return size == 0 ? 0 : std::min(position, size - 1);
  }
  /// Returns the position of the n-th request of a queue to which nothing is added. `n` is less than `size`.
  std::size_t nth(std::size_t size, std::size_t n) const {
    for (;;) {
      const std::size_t start = first(size);
      if (n < size - start) return start + n;
      n -= size - start;
      size = start;
    }
  }

 private:
  double part_ = 0;
};

}  // namespace kiln
