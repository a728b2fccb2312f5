// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln::bench {

/// The small unit: five kernels, no header; its cubin is 28 KB for sm_80 with NVRTC 13.0.
inline constexpr char kSmallSource[] = R"cuda(
__device__ __forceinline__ float soften(float x, float y, float z) { return rsqrtf(x * x + y * y + z * z + 1e-9f); }

extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    y[i] = a * x[i] + y[i];
  }
}

extern "C" __global__ void transpose(const float* in, float* out, int width, int height) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
  for (int row = 0; row < 32; row += 8) {
    if (x < width && y + row < height) tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * width + x];
  }
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
  for (int row = 0; row < 32; row += 8) {
    if (x < height && y + row < width) out[(y + row) * height + x] = tile[threadIdx.x][threadIdx.y + row];
  }
}

extern "C" __global__ void gravity(const float4* bodies, float4* forces, int n) {
  __shared__ float4 tile[128];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 me = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
  float4 force = make_float4(0, 0, 0, 0);
  for (int first = 0; first < n; first += 128) {
    const int j = first + threadIdx.x;
    tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll 32
    for (int k = 0; k < 128; ++k) {
      const float dx = tile[k].x - me.x;
      const float dy = tile[k].y - me.y;
      const float dz = tile[k].z - me.z;
      const float inverse = soften(dx, dy, dz);
      const float pull = tile[k].w * inverse * inverse * inverse;
      force.x += dx * pull;
      force.y += dy * pull;
      force.z += dz * pull;
    }
    __syncthreads();
  }
  if (i < n) forces[i] = force;
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float left[16][16];
  __shared__ float right[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y;
  const int column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int first = 0; first < n; first += 16) {
    const int across = first + threadIdx.x;
    const int down = first + threadIdx.y;
    left[threadIdx.y][threadIdx.x] = row < n && across < n ? a[row * n + across] : 0;
    right[threadIdx.y][threadIdx.x] = down < n && column < n ? b[down * n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}

extern "C" __global__ void blur(const float* in, float* out, int width, int height, const float* weights) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0;
#pragma unroll
  for (int dy = -4; dy <= 4; ++dy) {
#pragma unroll
    for (int dx = -3; dx <= 3; ++dx) {
      const int from_x = min(max(x + dx, 0), width - 1);
      const int from_y = min(max(y + dy, 0), height - 1);
      sum += weights[(dy + 4) * 7 + dx + 3] * in[from_y * width + from_x];
    }
  }
  out[y * width + x] = sum;
}
)cuda";

/// The large unit: a CUB kernel that reads 715 headers; its cubin is 194 KB with the same compiler.
inline constexpr char kLargeSource[] = R"cuda(
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

template <class T, int Threads, int Items>
__device__ void scan_tile(const T* in, T* out, int n) {
  using Load = cub::BlockLoad<T, Threads, Items, cub::BLOCK_LOAD_TRANSPOSE>;
  using Scan = cub::BlockScan<T, Threads, cub::BLOCK_SCAN_WARP_SCANS>;
  using Store = cub::BlockStore<T, Threads, Items, cub::BLOCK_STORE_TRANSPOSE>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Scan::TempStorage scan;
    typename Store::TempStorage store;
  } shared;
  const int base = blockIdx.x * Threads * Items;
  T items[Items];
  Load(shared.load).Load(in + base, items, n - base, T{});
  __syncthreads();
  Scan(shared.scan).ExclusiveSum(items, items);
  __syncthreads();
  Store(shared.store).Store(out + base, items, n - base);
}

extern "C" __global__ void scan_int(const int* in, int* out, int n) { scan_tile<int, 128, 8>(in, out, n); }
)cuda";

inline constexpr char kArchitecture[] = "sm_80";

}  // namespace kiln::bench
