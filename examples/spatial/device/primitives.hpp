#pragma once

#include <cstdint>

#include <kiln/kernel.hpp>
#include <kiln/result.hpp>

namespace spatial {

/// What every pipeline on a device is made of. Each puts its kernels on its kit's stream and returns; nothing is read
/// back, and no count of launches depends on how many elements there are. Used by one thread at a time.
class Primitives {
 public:
  Primitives() = default;
  Primitives(const Primitives&) = delete;
  Primitives& operator=(const Primitives&) = delete;
  virtual ~Primitives() = default;

  /// `offsets` gets count + 1 numbers of 32 bits: of each value the sum of those before it, and at the end, as in
  /// `total`, that of all. UINT32_MAX stands for sums that have no 32 bits. The offsets may be the values' own memory.
  virtual kiln::Status exclusive_scan(const kiln::Buffer& values, std::uint32_t count, const kiln::Buffer& offsets,
                                      const kiln::Buffer& total) = 0;
  /// `indices`, with room for `count` of them, gets the numbers of the bytes of `flags` that are not zero, in order;
  /// `chosen` how many they are.
  virtual kiln::Status compact(const kiln::Buffer& flags, std::uint32_t count, const kiln::Buffer& indices,
                               const kiln::Buffer& chosen) = 0;
  /// Keys of 64 bits, of which the lowest `bits` differ. `spare` is as large; which memory is whose may change.
  virtual kiln::Status sort(kiln::Buffer& keys, kiln::Buffer& spare, std::uint32_t count, unsigned bits) = 0;
};

}  // namespace spatial
