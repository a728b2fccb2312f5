#pragma once

#include <optional>

#include "spatial/device/primitives.hpp"

namespace spatial {

class DeviceKit;

/// By the kernels of kernels/primitives/. What they need besides is kept and grown, never shrunk.
class OpenClPrimitives final : public Primitives {
 public:
  explicit OpenClPrimitives(DeviceKit& kit) : kit_(kit) {}

  kiln::Status exclusive_scan(const kiln::Buffer& values, std::uint32_t count, const kiln::Buffer& offsets,
                              const kiln::Buffer& total) override;
  kiln::Status compact(const kiln::Buffer& flags, std::uint32_t count, const kiln::Buffer& indices,
                       const kiln::Buffer& chosen) override;
  kiln::Status sort(kiln::Buffer& keys, kiln::Buffer& spare, std::uint32_t count, unsigned bits) override;

 private:
  kiln::Status reserve(std::optional<kiln::Buffer>& scratch, std::size_t bytes) const;

  DeviceKit& kit_;
  std::optional<kiln::Buffer> tiles_;   // sums of tiles
  std::optional<kiln::Buffer> counts_;  // of digits
  std::optional<kiln::Buffer> total_;   // of digits, which nobody reads
};

}  // namespace spatial
