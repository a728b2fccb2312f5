// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "spatial/device/primitives.hpp"

namespace spatial {

class DeviceContext;

/// Primitives based on the kernels of examples/spatial/kernels/primitives/. Scratch memory is retained and grows but
/// never shrinks. Not thread-safe.
class OpenClPrimitives final : public Primitives {
 public:
  explicit OpenClPrimitives(DeviceContext& kit) : kit_(kit) {}

  kiln::Status exclusive_scan(const kiln::Buffer& values, std::uint32_t count, const kiln::Buffer& offsets,
                              const kiln::Buffer& total) override;
  kiln::Status compact(const kiln::Buffer& flags, std::uint32_t count, const kiln::Buffer& indices,
                       const kiln::Buffer& chosen) override;
  kiln::Status sort(kiln::Buffer& keys, kiln::Buffer& spare, std::uint32_t count, unsigned bits) override;
  kiln::Status unique(const kiln::Buffer& keys, std::uint32_t count, const kiln::Buffer& heads,
                      const kiln::Buffer& runs) override;
  kiln::Status segmented_reduce(Reduction reduction, const kiln::Buffer& values, const kiln::Buffer& offsets,
                                std::uint32_t segments, const kiln::Buffer& results) override;

 private:
  kiln::Status reserve(std::optional<kiln::Buffer>& scratch, std::size_t bytes) const;

  DeviceContext& kit_;
  std::optional<kiln::Buffer> tiles_;   // sums of the tiles
  std::optional<kiln::Buffer> counts_;  // counts of the digits
  std::optional<kiln::Buffer> total_;   // sum of the digit counts, which is not read
  std::optional<kiln::Buffer> flags_;   // keys that begin a run
};

}  // namespace spatial
