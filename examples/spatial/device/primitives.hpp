// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <kiln/kernel.hpp>
#include <kiln/result.hpp>
#include <kiln/stream.hpp>

namespace spatial {

/// How `Primitives::segmented_reduce` combines the values of a segment. The values are those of segmented_reduce.cl.
enum class Reduction : std::uint32_t { Sum = 0, Minimum = 1, Maximum = 2 };

/// The building blocks of the device pipelines. Each function enqueues its kernels on the kit's stream and returns
/// without reading anything back. The number of launches does not depend on the number of elements. Not thread-safe.
class Primitives {
 public:
  Primitives() = default;
  Primitives(const Primitives&) = delete;
  Primitives& operator=(const Primitives&) = delete;
  virtual ~Primitives() = default;

  /// Writes count + 1 32-bit numbers to `offsets`: for each value the sum of the values before it, and at the end the
  /// total, which is also written to `total`. Sums that exceed 32 bits become UINT32_MAX. `offsets` can be the same
  /// memory as `values`.
  virtual kiln::Status exclusive_scan(const kiln::Buffer& values, std::uint32_t count, const kiln::Buffer& offsets,
                                      const kiln::Buffer& total) = 0;
  /// Writes the indices of the nonzero bytes of `flags` to `indices`, in order, and their number to `chosen`. `indices`
  /// must have space for `count` of them.
  virtual kiln::Status compact(const kiln::Buffer& flags, std::uint32_t count, const kiln::Buffer& indices,
                               const kiln::Buffer& chosen) = 0;
  /// Sorts 64-bit keys by the lowest `bits` bits. `spare` must be as large as `keys`. The two buffers can be swapped.
  virtual kiln::Status sort(kiln::Buffer& keys, kiln::Buffer& spare, std::uint32_t count, unsigned bits) = 0;
  /// Writes the position of the first key of each run of 64-bit keys that agree in their lowest 32 bits to `heads`, in
  /// order, after the last of them `count`, and the number of runs to `runs`. `count` is not zero. `heads` must have
  /// space for `count` + 1 positions.
  virtual kiln::Status unique(const kiln::Buffer& keys, std::uint32_t count, const kiln::Buffer& heads,
                              const kiln::Buffer& runs) = 0;
  /// Combines the doubles offsets[s] … offsets[s + 1] of each segment s. A segment without values gives 0, infinity or
  /// minus infinity. `segments` is not zero.
  virtual kiln::Status segmented_reduce(Reduction reduction, const kiln::Buffer& values, const kiln::Buffer& offsets,
                                        std::uint32_t segments, const kiln::Buffer& results) = 0;
};

}  // namespace spatial
