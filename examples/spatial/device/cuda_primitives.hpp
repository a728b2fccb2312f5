// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include <kiln/cccl.hpp>

#include "spatial/device/primitives.hpp"

namespace spatial {

class DeviceContext;

/// Primitives based on CCCL algorithms. Callables are loaded on first use and retained. Scratch memory is retained and
/// grows but never shrinks: each callable owns its temporary storage, this class owns the rest. Not thread-safe.
class CudaPrimitives final : public Primitives {
 public:
  /// Enqueues one algorithm on a stream, as a kiln::cccl::Callable does.
  using Algorithm = std::function<kiln::Status(const kiln::cccl::Call&)>;
  using Algorithms = std::function<kiln::Result<Algorithm>(const kiln::cccl::Spec&)>;

  /// `algorithms` provides the algorithms: `of_session()`, or a replacement if NVIDIA's library does not run.
  CudaPrimitives(DeviceContext& kit, Algorithms algorithms) : kit_(kit), algorithms_(std::move(algorithms)) {}
  static Algorithms of_session(const kiln::Session& session);

  /// `values` must have space for `count` + 1 numbers; the value of the last one does not matter.
  kiln::Status exclusive_scan(const kiln::Buffer& values, std::uint32_t count, const kiln::Buffer& offsets,
                              const kiln::Buffer& total) override;
  /// Accepts at most 2^31 - 1 flags.
  kiln::Status compact(const kiln::Buffer& flags, std::uint32_t count, const kiln::Buffer& indices,
                       const kiln::Buffer& chosen) override;
  kiln::Status sort(kiln::Buffer& keys, kiln::Buffer& spare, std::uint32_t count, unsigned bits) override;
  kiln::Status unique(const kiln::Buffer& keys, std::uint32_t count, const kiln::Buffer& heads,
                      const kiln::Buffer& runs) override;
  kiln::Status segmented_reduce(Reduction reduction, const kiln::Buffer& values, const kiln::Buffer& offsets,
                                std::uint32_t segments, const kiln::Buffer& results) override;

 private:
  kiln::Status reserve(std::optional<kiln::Buffer>& scratch, std::size_t bytes) const;
  kiln::Status call(std::optional<Algorithm>& algorithm, const kiln::cccl::Spec& spec, kiln::cccl::Call call);

  DeviceContext& kit_;
  const Algorithms algorithms_;
  std::optional<Algorithm> scan_;
  std::optional<Algorithm> select_;
  std::optional<Algorithm> sort_;
  std::optional<Algorithm> unique_;
  std::optional<Algorithm> reductions_[3];  // by Reduction
  std::optional<kiln::Buffer> numbers_;     // the sequence to select from
  std::optional<kiln::Buffer> rest_;        // values that are not selected; keys in unique
  std::optional<kiln::Buffer> selected_;    // number of selected values
  std::optional<kiln::Buffer> values_;      // values sorted along with the keys, in and out
  std::optional<kiln::Buffer> moved_;
};

}  // namespace spatial
