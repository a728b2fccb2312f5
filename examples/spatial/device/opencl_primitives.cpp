// SPDX-License-Identifier: Apache-2.0
#include "spatial/device/opencl_primitives.hpp"

#include <algorithm>
#include <utility>

#include "spatial/device/device_context.hpp"

namespace spatial {
namespace {

// The same values as in the kernels: tiles.clh, radix_sort.cl.
constexpr std::uint32_t kGroup = 64;
constexpr std::uint32_t kDigits = 256;
constexpr unsigned kDigitBits = 8;

// The partition of an array: a run for each work item, a tile for each work group.
struct Division {
  std::uint32_t run;
  std::uint32_t tiles;
};

// Returns the partition of `count` elements. PoCL recompiles a kernel for launches of more than 65,535 work items, so
// runs grow instead, up to `longest`.
Division divided(std::uint32_t count, std::uint32_t shortest, std::uint32_t longest) {
  constexpr std::uint32_t kMaxItems = 1023 * kGroup;
  const std::uint32_t run = std::clamp(count / kMaxItems + 1, shortest, longest);
  return {run, std::max<std::uint32_t>(count / (run * kGroup) + (count % (run * kGroup) != 0 ? 1 : 0), 1)};
}

// The shortest run gives the counters of a sort as many tiles as its keys have. The longest only excludes arrays of
// 2^32 elements.
Division for_sums(std::uint32_t count) { return divided(count, 4, 1 << 17); }
// A shorter run would spend more on its counters than on its keys. With a longer run, 16 bits could not count a tile.
Division for_sort(std::uint32_t count) { return divided(count, 64, 1023); }

}  // namespace

kiln::Status OpenClPrimitives::reserve(std::optional<kiln::Buffer>& scratch, std::size_t bytes) const {
  if (scratch && scratch->size() >= bytes) return {};
  return kit_.allocate(bytes, scratch);
}

kiln::Status OpenClPrimitives::exclusive_scan(const kiln::Buffer& values, std::uint32_t count,
                                              const kiln::Buffer& offsets, const kiln::Buffer& total) {
  const auto [run, tiles] = for_sums(count);
  kiln::Status done = reserve(tiles_, tiles * sizeof(std::uint64_t));
  if (done) done = kit_.launch_groups("scan_sums", tiles, count, run, values, *tiles_);
  if (done) done = kit_.launch_groups("scan_offsets", tiles, count, run, values, *tiles_, total, offsets);
  return done;
}

kiln::Status OpenClPrimitives::compact(const kiln::Buffer& flags, std::uint32_t count, const kiln::Buffer& indices,
                                       const kiln::Buffer& chosen) {
  const auto [run, tiles] = for_sums(count);
  kiln::Status done = reserve(tiles_, tiles * sizeof(std::uint64_t));
  if (done) done = kit_.launch_groups("compact_counts", tiles, count, run, flags, *tiles_);
  if (done) done = kit_.launch_groups("compact_tiles", 1, tiles, *tiles_, chosen);
  if (done) done = kit_.launch_groups("compact_indices", tiles, count, run, flags, *tiles_, indices);
  return done;
}

kiln::Status OpenClPrimitives::sort(kiln::Buffer& keys, kiln::Buffer& spare, std::uint32_t count, unsigned bits) {
  if (count < 2) return {};
  const auto [run, tiles] = for_sort(count);
  const std::uint32_t counters = tiles * kDigits;
  // Allocates the buffers of all passes before the first pass.
  kiln::Status done = reserve(counts_, (std::size_t{counters} + 1) * sizeof(std::uint32_t));
  if (done) done = reserve(total_, sizeof(std::uint32_t));
  if (done) done = reserve(tiles_, for_sums(counters).tiles * sizeof(std::uint64_t));
  for (std::uint32_t shift = 0; done && shift < bits; shift += kDigitBits) {
    done = kit_.launch_groups("sort_counts", tiles, count, run, shift, keys, *counts_);
    if (done) done = exclusive_scan(*counts_, counters, *counts_, *total_);
    if (done) done = kit_.launch_groups("sort_scatter", tiles, count, run, shift, keys, *counts_, spare);
    std::swap(keys, spare);
  }
  return done;
}

kiln::Status OpenClPrimitives::unique(const kiln::Buffer& keys, std::uint32_t count, const kiln::Buffer& heads,
                                      const kiln::Buffer& runs) {
  kiln::Status done = reserve(flags_, count);
  if (done) done = kit_.launch("unique_flags", count, count, keys, *flags_);
  if (done) done = compact(*flags_, count, heads, runs);
  if (done) done = kit_.launch("unique_end", 1, count, runs, heads);
  return done;
}

kiln::Status OpenClPrimitives::segmented_reduce(Reduction reduction, const kiln::Buffer& values,
                                                const kiln::Buffer& offsets, std::uint32_t segments,
                                                const kiln::Buffer& results) {
  return kit_.launch("segmented_reduce", segments, static_cast<std::uint32_t>(reduction), segments, offsets, values,
                     results);
}

}  // namespace spatial
