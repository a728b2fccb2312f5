// SPDX-License-Identifier: Apache-2.0
#include "spatial/device/cuda_primitives.hpp"

#include <limits>
#include <utility>

#include "spatial/device/cuda_units.hpp"
#include "spatial/device/device_context.hpp"

namespace spatial {
namespace {

constexpr std::uint32_t kNothing = 0;  // the initial value of a scan
// The initial values of the reductions.
constexpr double kNeutral[] = {0, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};

kiln::Error invalid(const char* message) { return {kiln::Code::InvalidArgument, message, {}}; }

}  // namespace

CudaPrimitives::Algorithms CudaPrimitives::of_session(const kiln::Session& session) {
  return [session](const kiln::cccl::Spec& spec) -> kiln::Result<Algorithm> {
    kiln::Session own = session;
    // There is no other implementation on the device, so the call waits without limit.
    auto callable = kiln::cccl::get(own, spec, kiln::kForever);
    if (!callable) return std::move(callable).error();
    return Algorithm(*std::move(callable));
  };
}

kiln::Status CudaPrimitives::reserve(std::optional<kiln::Buffer>& scratch, std::size_t bytes) const {
  if (scratch && scratch->size() >= bytes) return {};
  return kit_.allocate(bytes, scratch);
}

kiln::Status CudaPrimitives::call(std::optional<Algorithm>& algorithm, const kiln::cccl::Spec& spec,
                                  kiln::cccl::Call call) {
  if (!algorithm) {
    auto got = algorithms_(spec);
    if (!got) return std::move(got).error();
    algorithm = *std::move(got);
  }
  call.stream = kit_.stream();
  return (*algorithm)(call);
}

kiln::Status CudaPrimitives::exclusive_scan(const kiln::Buffer& values, std::uint32_t count,
                                            const kiln::Buffer& offsets, const kiln::Buffer& total) {
  // One extra element, which contributes to no sum, makes the last sum the total.
  const std::uint64_t items = std::uint64_t{count} + 1;
  if (values.size() < items * sizeof(std::uint32_t)) return invalid("a scan needs a buffer for one extra value");
  kiln::cccl::Call scan;
  scan.iterators = {values.native(), offsets.native()};
  scan.items = items;
  scan.init = &kNothing;
  kiln::Status done = call(scan_, cuda::saturating_scan(), std::move(scan));
  if (done) done = kit_.launch("scan_total", 1, count, offsets, total);
  return done;
}

kiln::Status CudaPrimitives::compact(const kiln::Buffer& flags, std::uint32_t count, const kiln::Buffer& indices,
                                     const kiln::Buffer& chosen) {
  const std::size_t bytes = count * sizeof(std::int32_t);
  kiln::Status done = reserve(numbers_, bytes);
  if (done) done = reserve(rest_, bytes);
  if (done) done = reserve(selected_, 2 * sizeof(std::int64_t));
  if (done) done = kit_.launch("compact_numbers", count, count, flags, *numbers_);
  if (!done) return done;
  kiln::cccl::Call select;
  select.iterators = {numbers_->native(), indices.native(), rest_->native(), rest_->native(), selected_->native()};
  select.items = count;
  done = call(select_, cuda::selection(), std::move(select));
  if (done) done = kit_.launch("compact_indices", count, count, *selected_, indices, chosen);
  return done;
}

kiln::Status CudaPrimitives::sort(kiln::Buffer& keys, kiln::Buffer& spare, std::uint32_t count, unsigned bits) {
  if (count < 2) return {};
  kiln::Status done = reserve(values_, count * sizeof(std::int32_t));
  if (done) done = reserve(moved_, count * sizeof(std::int32_t));
  if (!done) return done;
  kiln::cccl::Call sort;
  sort.iterators = {keys.native(), spare.native(), values_->native(), moved_->native()};
  sort.items = count;
  sort.end_bit = static_cast<int>(bits);
  done = call(sort_, cuda::sort(), std::move(sort));
  if (done) std::swap(keys, spare);
  return done;
}

kiln::Status CudaPrimitives::unique(const kiln::Buffer& keys, std::uint32_t count, const kiln::Buffer& heads,
                                    const kiln::Buffer& runs) {
  const std::size_t bytes = count * sizeof(std::int32_t);
  kiln::Status done = reserve(numbers_, bytes);
  if (done) done = reserve(rest_, bytes);
  if (done) done = reserve(values_, bytes);
  if (done) done = reserve(selected_, 2 * sizeof(std::int64_t));
  if (done) done = kit_.launch("unique_keys", count, count, keys, *rest_, *numbers_);
  if (!done) return done;
  kiln::cccl::Call unique;
  unique.iterators = {rest_->native(), numbers_->native(), values_->native(), heads.native(), selected_->native()};
  unique.items = count;
  done = call(unique_, cuda::unique(), std::move(unique));
  if (done) done = kit_.launch("unique_end", 1, count, *selected_, heads, runs);
  return done;
}

kiln::Status CudaPrimitives::segmented_reduce(Reduction reduction, const kiln::Buffer& values,
                                              const kiln::Buffer& offsets, std::uint32_t segments,
                                              const kiln::Buffer& results) {
  const auto kind = static_cast<std::uint32_t>(reduction);
  const auto* const begins = static_cast<const std::uint32_t*>(offsets.native());
  kiln::cccl::Call reduce;
  reduce.iterators = {values.native(), results.native(), begins, begins + 1};
  reduce.items = values.size() / sizeof(double);
  reduce.secondary_items = segments;
  reduce.init = &kNeutral[kind];
  return call(reductions_[kind], cuda::segmented_reduction(reduction), std::move(reduce));
}

}  // namespace spatial
