// SPDX-License-Identifier: Apache-2.0
#include "bench/support/cub_units.hpp"

#include <utility>

namespace kiln::bench {
namespace {

constexpr char kIncludes[] = R"cuda(
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
)cuda";

// Each unit has one kernel with the name of the unit.
constexpr std::pair<const char*, const char*> kBodies[] = {
    {"exclusive_sum", R"cuda(
extern "C" __global__ void exclusive_sum(const int* in, int* out) {
  using Load = cub::BlockLoad<int, 128, 8, cub::BLOCK_LOAD_TRANSPOSE>;
  using Scan = cub::BlockScan<int, 128, cub::BLOCK_SCAN_WARP_SCANS>;
  using Store = cub::BlockStore<int, 128, 8, cub::BLOCK_STORE_TRANSPOSE>;
  __shared__ union {
    Load::TempStorage load;
    Scan::TempStorage scan;
    Store::TempStorage store;
  } shared;
  int items[8];
  Load(shared.load).Load(in + blockIdx.x * 1024, items);
  __syncthreads();
  Scan(shared.scan).ExclusiveSum(items, items);
  __syncthreads();
  Store(shared.store).Store(out + blockIdx.x * 1024, items);
}
)cuda"},
    {"running_maximum", R"cuda(
struct Larger {
  __device__ float operator()(float a, float b) const { return a < b ? b : a; }
};
extern "C" __global__ void running_maximum(const float* in, float* out) {
  using Scan = cub::BlockScan<float, 256>;
  __shared__ Scan::TempStorage shared;
  float items[4];
  cub::LoadDirectBlocked(threadIdx.x, in + blockIdx.x * 1024, items);
  Scan(shared).InclusiveScan(items, items, Larger{});
  cub::StoreDirectBlocked(threadIdx.x, out + blockIdx.x * 1024, items);
}
)cuda"},
    {"sum_of_squares", R"cuda(
extern "C" __global__ void sum_of_squares(const double* in, double* out, int n) {
  using Reduce = cub::BlockReduce<double, 256, cub::BLOCK_REDUCE_RAKING>;
  __shared__ Reduce::TempStorage shared;
  double sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += in[i] * in[i];
  const double total = Reduce(shared).Sum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}
)cuda"},
    {"nearest", R"cuda(
struct Candidate {
  float distance;
  int index;
};
struct Nearer {
  __device__ Candidate operator()(const Candidate& a, const Candidate& b) const {
    return b.distance < a.distance || (b.distance == a.distance && b.index < a.index) ? b : a;
  }
};
extern "C" __global__ void nearest(const float2* points, int n, float2 to, Candidate* out) {
  using Reduce = cub::BlockReduce<Candidate, 128>;
  __shared__ Reduce::TempStorage shared;
  Candidate best{3.4e38f, -1};
  for (int i = threadIdx.x; i < n; i += 128) {
    const float x = points[i].x - to.x, y = points[i].y - to.y;
    best = Nearer{}(best, Candidate{x * x + y * y, i});
  }
  best = Reduce(shared).Reduce(best, Nearer{});
  if (threadIdx.x == 0) *out = best;
}
)cuda"},
    {"sort_keys", R"cuda(
extern "C" __global__ void sort_keys(unsigned* keys) {
  using Sort = cub::BlockRadixSort<unsigned, 128, 4>;
  __shared__ Sort::TempStorage shared;
  unsigned items[4];
  cub::LoadDirectBlocked(threadIdx.x, keys + blockIdx.x * 512, items);
  Sort(shared).Sort(items);
  cub::StoreDirectBlocked(threadIdx.x, keys + blockIdx.x * 512, items);
}
)cuda"},
    {"sort_pairs", R"cuda(
extern "C" __global__ void sort_pairs(float* keys, int* values) {
  using Sort = cub::BlockRadixSort<float, 64, 4, int>;
  __shared__ Sort::TempStorage shared;
  float items[4];
  int payload[4];
  cub::LoadDirectBlocked(threadIdx.x, keys + blockIdx.x * 256, items);
  cub::LoadDirectBlocked(threadIdx.x, values + blockIdx.x * 256, payload);
  Sort(shared).SortDescendingBlockedToStriped(items, payload);
  cub::StoreDirectStriped<64>(threadIdx.x, keys + blockIdx.x * 256, items);
  cub::StoreDirectStriped<64>(threadIdx.x, values + blockIdx.x * 256, payload);
}
)cuda"},
    {"run_heads", R"cuda(
struct Differs {
  __device__ bool operator()(int a, int b) const { return a != b; }
};
extern "C" __global__ void run_heads(const int* in, int* positions, int* count) {
  using Heads = cub::BlockDiscontinuity<int, 128>;
  using Scan = cub::BlockScan<int, 128>;
  __shared__ union {
    Heads::TempStorage heads;
    Scan::TempStorage scan;
  } shared;
  int items[4], flags[4], offsets[4], total;
  cub::LoadDirectBlocked(threadIdx.x, in, items);
  Heads(shared.heads).FlagHeads(flags, items, Differs{});
  __syncthreads();
  Scan(shared.scan).ExclusiveSum(flags, offsets, total);
  for (int i = 0; i < 4; ++i) {
    if (flags[i]) positions[offsets[i]] = threadIdx.x * 4 + i;
  }
  if (threadIdx.x == 0) *count = total;
}
)cuda"},
    {"histogram", R"cuda(
extern "C" __global__ void histogram(const unsigned char* in, unsigned* bins) {
  using Exchange = cub::BlockExchange<unsigned char, 128, 8>;
  using Histogram = cub::BlockHistogram<unsigned char, 128, 8, 256, cub::BLOCK_HISTO_ATOMIC>;
  __shared__ union {
    Exchange::TempStorage exchange;
    Histogram::TempStorage histogram;
  } shared;
  __shared__ unsigned counts[256];
  unsigned char items[8];
  cub::LoadDirectStriped<128>(threadIdx.x, in + blockIdx.x * 1024, items);
  Exchange(shared.exchange).StripedToBlocked(items, items);
  __syncthreads();
  Histogram(shared.histogram).Histogram(items, counts);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 128) atomicAdd(bins + i, counts[i]);
}
)cuda"},
};

}  // namespace

std::vector<Unit> cub_units(const std::vector<std::string>& include_roots) {
  std::vector<Unit> units;
  for (const auto& [name, body] : kBodies) {
    Unit unit = Unit::cuda(std::string(name) + ".cu", std::string(kIncludes) + body)
                    .with_options({"-std=c++17", "-default-device", "-DCUB_DISABLE_CDP"})
                    .with_entry(name);
    for (const std::string& root : include_roots) unit = unit.with_include_root(root);
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace kiln::bench
