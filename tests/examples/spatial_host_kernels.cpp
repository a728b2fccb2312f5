// SPDX-License-Identifier: Apache-2.0
#include "examples/spatial_host_kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>

#include "support/fixtures/cuda_on_host.hpp"

#include "examples/spatial/kernels/primitives/compact.cu"
#include "examples/spatial/kernels/primitives/scan.cu"
#include "examples/spatial/kernels/primitives/unique.cu"
#include "examples/spatial/kernels/spatial/area_fp32.cu"
#include "examples/spatial/kernels/spatial/area_fp64.cu"
#include "examples/spatial/kernels/spatial/box_area.cu"
#include "examples/spatial/kernels/spatial/box_within.cu"
#include "examples/spatial/kernels/spatial/candidates.cu"
#include "examples/spatial/kernels/spatial/edges.cu"
#include "examples/spatial/kernels/spatial/grid.cu"
#include "examples/spatial/kernels/spatial/groups.cu"
#include "examples/spatial/kernels/spatial/links.cu"
#include "examples/spatial/kernels/spatial/pairs.cu"
#include "examples/spatial/kernels/spatial/parts.cu"
#include "examples/spatial/kernels/spatial/point_bounds.cu"
#include "examples/spatial/kernels/spatial/polygon_bounds.cu"
#include "examples/spatial/kernels/spatial/refine.cu"
#include "examples/spatial/kernels/spatial/within.cu"
#include "examples/spatial/kernels/spatial/wkb_points.cu"
#include "examples/spatial/kernels/spatial/wkb_polygons.cu"

namespace kiln::test {

const char* const kStandIns = R"(
typedef unsigned long long Number;
extern "C" __global__ void stand_in_scan(const unsigned* in, unsigned* out, Number count) {}
extern "C" __global__ void stand_in_select(const int* in, int* first, int* rest, long long* counts, Number count) {}
extern "C" __global__ void stand_in_sort(const Number* in, Number* out, const int* values, int* moved, Number count,
                                         int bits) {}
extern "C" __global__ void stand_in_unique(const int* in, const int* values, int* out, int* kept, long long* count,
                                           Number items) {}
extern "C" __global__ void stand_in_reduce(const double* in, double* out, const unsigned* begins, const unsigned* ends,
                                           Number segments, int kind, double init) {}
)";

namespace {

using Number = unsigned long long;

// Behaves as CCCL's documentation specifies.
void stand_in_scan(const unsigned* in, unsigned* out, Number count) {
  unsigned long long sum = 0;
  for (Number i = 0; i < count; ++i) {
    const unsigned value = in[i];
    out[i] = static_cast<unsigned>(std::min<unsigned long long>(sum, 0xffffffffu));
    sum += value;
  }
}

void stand_in_select(const int* in, int* first, int* rest, long long* counts, Number count) {
  counts[0] = 0;
  counts[1] = 0;
  for (Number i = 0; i < count; ++i) *(in[i] != 0 ? first + counts[0]++ : rest++) = in[i];
}

void stand_in_sort(const Number* in, Number* out, const int* values, int* moved, Number count, int bits) {
  const Number mask = bits >= 64 ? ~Number{0} : (Number{1} << bits) - 1;
  std::vector<Number> order(count);
  std::iota(order.begin(), order.end(), Number{0});
  std::stable_sort(order.begin(), order.end(), [&](Number a, Number b) { return (in[a] & mask) < (in[b] & mask); });
  for (Number i = 0; i < count; ++i) {
    out[i] = in[order[i]];
    moved[i] = values[order[i]];
  }
}

void stand_in_unique(const int* in, const int* values, int* out, int* kept, long long* count, Number items) {
  *count = 0;
  for (Number i = 0; i < items; ++i) {
    if (i != 0 && in[i] == in[i - 1]) continue;
    out[*count] = in[i];
    kept[(*count)++] = values[i];
  }
}

void stand_in_reduce(const double* in, double* out, const unsigned* begins, const unsigned* ends, Number segments,
                     int kind, double init) {
  for (Number segment = 0; segment < segments; ++segment) {
    double result = init;
    for (unsigned i = begins[segment]; i < ends[segment]; ++i) {
      result = kind == 0 ? result + in[i] : kind == 1 ? std::min(result, in[i]) : std::max(result, in[i]);
    }
    out[segment] = result;
  }
}

template <class T>
T argument_at(const FakeLaunch& launch, std::size_t index) {
  if constexpr (std::is_pointer_v<T>) {
    const auto address = argument_at<cuda::DevicePointer>(launch, index);
    return static_cast<T>(launch.host(address, 1));
  } else {
    T value{};
    std::memcpy(&value, launch.arguments[index].data, sizeof value);
    return value;
  }
}

// Calls `run` with the arguments. A launch with wrong arguments changes nothing, which the results show.
template <class... Types, std::size_t... Indices, class Run>
void with_arguments(void (*kernel)(Types...), const FakeLaunch& launch, std::index_sequence<Indices...>, Run run) {
  if (launch.argument_count != sizeof...(Types)) return;
  if (((launch.arguments[Indices].size != sizeof(Types)) || ...)) return;
  const std::tuple<Types...> arguments(argument_at<Types>(launch, Indices)...);
  run([&] { kernel(std::get<Indices>(arguments)...); });
}

// Runs one thread after another, which is correct for kernels whose threads do not synchronize.
template <class... Types>
void run_apart(void (*kernel)(Types...), const FakeLaunch& launch) {
  with_arguments(kernel, launch, std::index_sequence_for<Types...>(), [&](auto body) {
    gridDim = {launch.grid[0], 1, 1};
    blockDim = {launch.block[0], 1, 1};
    for (unsigned block = 0; block < launch.grid[0]; ++block) {
      for (unsigned thread = 0; thread < launch.block[0]; ++thread) {
        blockIdx = {block, 0, 0};
        threadIdx = {thread, 0, 0};
        body();
      }
    }
  });
}

// Runs a warp of real threads, which synchronize. The kernel loops over its rows in steps of the grid, so one warp is
// enough.
template <class... Types>
void run_together(void (*kernel)(Types...), const FakeLaunch& launch) {
  with_arguments(kernel, launch, std::index_sequence_for<Types...>(), [](auto body) {
    kiln::test::launch({1, 1, 1}, 32, body);
  });
}

// Runs the function once: it is a complete algorithm.
template <class... Types>
void run_once(void (*kernel)(Types...), const FakeLaunch& launch) {
  with_arguments(kernel, launch, std::index_sequence_for<Types...>(), [](auto body) { body(); });
}

}  // namespace

#define KILN_KERNEL(name, how)                                         \
  SpatialHostKernel {                                                  \
#name, [](const FakeLaunch* launch, void*) { how(name, *launch); } \
  }

std::vector<SpatialHostKernel> spatial_host_kernels() {
  return {KILN_KERNEL(scan_total, run_apart),        KILN_KERNEL(compact_numbers, run_apart),
          KILN_KERNEL(compact_indices, run_apart),   KILN_KERNEL(point_bounds, run_apart),
          KILN_KERNEL(polygon_bounds, run_apart),    KILN_KERNEL(within_filter, run_apart),
          KILN_KERNEL(within_refine, run_apart),     KILN_KERNEL(grid_begin, run_together),
          KILN_KERNEL(grid_count, run_apart),        KILN_KERNEL(grid_fill, run_apart),
          KILN_KERNEL(candidates_count, run_apart),  KILN_KERNEL(candidates_write, run_apart),
          KILN_KERNEL(refine_candidates, run_apart), KILN_KERNEL(gather_keys, run_apart),
          KILN_KERNEL(pairs_of_keys, run_apart),     KILN_KERNEL(stand_in_scan, run_once),
          KILN_KERNEL(stand_in_select, run_once),    KILN_KERNEL(stand_in_sort, run_once),
          KILN_KERNEL(stand_in_unique, run_once),    KILN_KERNEL(stand_in_reduce, run_once),
          KILN_KERNEL(unique_keys, run_apart),       KILN_KERNEL(unique_end, run_apart),
          KILN_KERNEL(wkb_point_sizes, run_apart),   KILN_KERNEL(wkb_points, run_apart),
          KILN_KERNEL(wkb_shells, run_apart),        KILN_KERNEL(wkb_polygon_sizes, run_apart),
          KILN_KERNEL(wkb_rows, run_apart),          KILN_KERNEL(wkb_rings, run_apart),
          KILN_KERNEL(wkb_vertices, run_apart),      KILN_KERNEL(group_keys, run_apart),
          KILN_KERNEL(group_ranks, run_apart),       KILN_KERNEL(group_rows, run_apart),
          KILN_KERNEL(ring_sides, run_apart),        KILN_KERNEL(edge_keys, run_apart),
          KILN_KERNEL(edge_cancel, run_apart),       KILN_KERNEL(dissolve_check, run_apart),
          KILN_KERNEL(boundary_keys, run_apart),     KILN_KERNEL(link_edges, run_apart),
          KILN_KERNEL(jump_begin, run_apart),        KILN_KERNEL(jump_ahead, run_apart),
          KILN_KERNEL(ring_labels, run_apart),       KILN_KERNEL(ring_keys, run_apart),
          KILN_KERNEL(ring_lengths, run_apart),      KILN_KERNEL(place_edges, run_apart),
          KILN_KERNEL(leftmost_heights, run_apart),  KILN_KERNEL(ring_turns, run_apart),
          KILN_KERNEL(ring_shells, run_apart),       KILN_KERNEL(ring_sizes, run_apart),
          KILN_KERNEL(shell_bits, run_apart),        KILN_KERNEL(group_rings, run_apart),
          KILN_KERNEL(write_rings, run_apart),       KILN_KERNEL(box_within, run_apart),
          KILN_KERNEL(area_fp64, run_apart),         KILN_KERNEL(area_fp32, run_apart),
          KILN_KERNEL(box_area, run_apart)};
}

}  // namespace kiln::test
