#include "spatial/device/opencl_primitives.hpp"

#include <algorithm>
#include <utility>

#include "spatial/device/kit.hpp"

namespace spatial {
namespace {

// As the kernels have them: tiles.clh, radix_sort.cl.
constexpr std::uint32_t kTile = 1024;
constexpr std::uint32_t kSortTile = 4096;
constexpr std::uint32_t kDigits = 256;
constexpr unsigned kDigitBits = 8;

std::uint32_t tiles_of(std::uint32_t count, std::uint32_t tile) {
  return std::max<std::uint32_t>(count / tile + (count % tile != 0 ? 1 : 0), 1);
}

}  // namespace

kiln::Status OpenClPrimitives::reserve(std::optional<kiln::Buffer>& scratch, std::size_t bytes) const {
  if (scratch && scratch->size() >= bytes) return {};
  return kit_.allocate(bytes, scratch);
}

kiln::Status OpenClPrimitives::exclusive_scan(const kiln::Buffer& values, std::uint32_t count,
                                              const kiln::Buffer& offsets, const kiln::Buffer& total) {
  const std::uint32_t tiles = tiles_of(count, kTile);
  kiln::Status done = reserve(tiles_, tiles * sizeof(std::uint64_t));
  if (done) done = kit_.launch_groups("scan_sums", tiles, count, values, *tiles_);
  if (done) done = kit_.launch_groups("scan_tiles", 1, tiles, *tiles_, total);
  if (done) done = kit_.launch_groups("scan_offsets", tiles, count, values, *tiles_, total, offsets);
  return done;
}

kiln::Status OpenClPrimitives::compact(const kiln::Buffer& flags, std::uint32_t count, const kiln::Buffer& indices,
                                       const kiln::Buffer& chosen) {
  const std::uint32_t tiles = tiles_of(count, kTile);
  kiln::Status done = reserve(tiles_, tiles * sizeof(std::uint64_t));
  if (done) done = kit_.launch_groups("compact_counts", tiles, count, flags, *tiles_);
  if (done) done = kit_.launch_groups("compact_tiles", 1, tiles, *tiles_, chosen);
  if (done) done = kit_.launch_groups("compact_indices", tiles, count, flags, *tiles_, indices);
  return done;
}

kiln::Status OpenClPrimitives::sort(kiln::Buffer& keys, kiln::Buffer& spare, std::uint32_t count, unsigned bits) {
  if (count < 2) return {};
  const std::uint32_t tiles = tiles_of(count, kSortTile);
  const std::uint32_t counters = tiles * kDigits;
  // All that a pass needs, before the first one.
  kiln::Status done = reserve(counts_, (counters + 1) * sizeof(std::uint32_t));
  if (done) done = reserve(total_, sizeof(std::uint32_t));
  if (done) done = reserve(tiles_, tiles_of(counters, kTile) * sizeof(std::uint64_t));
  for (std::uint32_t shift = 0; done && shift < bits; shift += kDigitBits) {
    done = kit_.launch_groups("sort_counts", tiles, count, shift, keys, *counts_);
    if (done) done = exclusive_scan(*counts_, counters, *counts_, *total_);
    if (done) done = kit_.launch_groups("sort_scatter", tiles, count, shift, keys, *counts_, spare);
    std::swap(keys, spare);
  }
  return done;
}

}  // namespace spatial
