#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include <kiln/cccl.hpp>

#include "spatial/device/primitives.hpp"

namespace spatial {

class DeviceKit;

/// By NVIDIA's algorithms, whose callables are got at the first use and kept. What they and the kernels around them
/// need besides is kept and grown, never shrunk: temporary storage by the callable, the rest here.
class CudaPrimitives final : public Primitives {
 public:
  /// Puts one algorithm on a stream, as a kiln::cccl::Callable does.
  using Algorithm = std::function<kiln::Status(const kiln::cccl::Call&)>;
  using Algorithms = std::function<kiln::Result<Algorithm>(const kiln::cccl::Spec&)>;

  /// `algorithms` is where they come from: of_session(), or what stands in for NVIDIA's library where that does not
  /// run.
  CudaPrimitives(DeviceKit& kit, Algorithms algorithms) : kit_(kit), algorithms_(std::move(algorithms)) {}
  static Algorithms of_session(const kiln::Session& session);

  /// `values` has room for one number more than `count`, whatever that is.
  kiln::Status exclusive_scan(const kiln::Buffer& values, std::uint32_t count, const kiln::Buffer& offsets,
                              const kiln::Buffer& total) override;
  /// At most 2^31 - 1 flags.
  kiln::Status compact(const kiln::Buffer& flags, std::uint32_t count, const kiln::Buffer& indices,
                       const kiln::Buffer& chosen) override;
  kiln::Status sort(kiln::Buffer& keys, kiln::Buffer& spare, std::uint32_t count, unsigned bits) override;

 private:
  kiln::Status reserve(std::optional<kiln::Buffer>& scratch, std::size_t bytes) const;
  kiln::Status call(std::optional<Algorithm>& algorithm, const kiln::cccl::Spec& spec, kiln::cccl::Call call);

  DeviceKit& kit_;
  const Algorithms algorithms_;
  std::optional<Algorithm> scan_;
  std::optional<Algorithm> select_;
  std::optional<Algorithm> sort_;
  std::optional<kiln::Buffer> numbers_;   // what is selected from
  std::optional<kiln::Buffer> rest_;      // what is not selected
  std::optional<kiln::Buffer> selected_;  // how many are
  std::optional<kiln::Buffer> values_;    // beside the keys of a sort, in and out
  std::optional<kiln::Buffer> moved_;
};

}  // namespace spatial
