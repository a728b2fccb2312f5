#pragma once

#include <atomic>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

// As much of CUDA C++ as kernels/geometry uses, so that a test can include a .cu file and run its kernels: a block is
// so many threads of this processor, which meet at barriers, and one block runs after another. It says whether a kernel
// computes what it should, and hangs where lanes of a warp do not meet; it says nothing about a GPU.
//
// A test includes one .cu file, behind this. These are CUDA's own words, which only macros can stand for.
// NOLINTBEGIN
#define __device__
#define __global__
#define __noinline__
#define __shared__ static
// NOLINTEND

namespace kiln::test {

struct Index3 {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};

/// What the threads of the running block share.
struct HostBlock {
  struct Warp {
    std::barrier<> barrier{32};
    std::uint64_t slots[32] = {};
  };
  explicit HostBlock(unsigned threads) : barrier(threads) {
    for (unsigned i = 0; i < threads; i += 32) warps.push_back(std::make_unique<Warp>());
  }
  std::barrier<> barrier;
  std::vector<std::unique_ptr<Warp>> warps;
  std::atomic<int> any{0};
};
inline HostBlock* host_block = nullptr;

}  // namespace kiln::test

inline thread_local kiln::test::Index3 threadIdx;
inline thread_local kiln::test::Index3 blockIdx;
inline kiln::test::Index3 blockDim;
inline kiln::test::Index3 gridDim;

namespace kiln::test {

/// Runs `kernel` as a grid of blocks of so many threads, a multiple of 32.
template <class F>
void launch(Index3 grid, unsigned threads, F kernel) {
  gridDim = {grid.x, std::max(grid.y, 1U), 1};
  blockDim = {threads, 1, 1};
  for (unsigned y = 0; y < gridDim.y; ++y) {
    for (unsigned x = 0; x < grid.x; ++x) {
      HostBlock block(threads);
      host_block = &block;
      std::vector<std::jthread> running;
      for (unsigned i = 0; i < threads; ++i) {
        running.emplace_back([&, i] {
          threadIdx = {i, 0, 0};
          blockIdx = {x, y, 0};
          kernel();
        });
      }
    }
  }
}

inline HostBlock::Warp& own_warp() { return *host_block->warps[threadIdx.x >> 5]; }

/// The value that another lane of the warp has brought; one's own where there is no such lane.
template <class T>
T from_lane(T mine, int lane) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  HostBlock::Warp& warp = own_warp();
  std::memcpy(&warp.slots[threadIdx.x & 31U], &mine, sizeof mine);
  warp.barrier.arrive_and_wait();
  if (lane >= 0 && lane < 32) std::memcpy(&mine, &warp.slots[lane], sizeof mine);
  warp.barrier.arrive_and_wait();
  return mine;
}

/// A bit for each lane: whether what it has brought is what `wanted` is.
inline unsigned lanes_with(std::uint64_t mine, std::uint64_t wanted) {
  HostBlock::Warp& warp = own_warp();
  warp.slots[threadIdx.x & 31U] = mine;
  warp.barrier.arrive_and_wait();
  unsigned lanes = 0;
  for (unsigned i = 0; i < 32; ++i) lanes |= warp.slots[i] == wanted ? 1U << i : 0U;
  warp.barrier.arrive_and_wait();
  return lanes;
}

}  // namespace kiln::test

inline void __syncthreads() { kiln::test::host_block->barrier.arrive_and_wait(); }
inline void __syncwarp() { kiln::test::own_warp().barrier.arrive_and_wait(); }
inline int __syncthreads_or(int value) {
  __syncthreads();
  kiln::test::host_block->any = 0;
  __syncthreads();
  if (value != 0) kiln::test::host_block->any = 1;
  __syncthreads();
  return kiln::test::host_block->any;
}
inline unsigned __ballot_sync(unsigned, bool bit) { return kiln::test::lanes_with(bit ? 1 : 0, 1); }
inline int __any_sync(unsigned mask, bool bit) { return __ballot_sync(mask, bit) != 0 ? 1 : 0; }
inline unsigned __match_any_sync(unsigned, int value) {
  const auto bits = static_cast<std::uint64_t>(static_cast<std::uint32_t>(value));
  return kiln::test::lanes_with(bits, bits);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int distance) {
  return kiln::test::from_lane(value, static_cast<int>(threadIdx.x & 31U) ^ distance);
}
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned distance) {
  return kiln::test::from_lane(value, static_cast<int>(threadIdx.x & 31U) - static_cast<int>(distance));
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return kiln::test::from_lane(value, lane);
}

// Volatile, because the host's compiler may fuse a product and a sum as well.
inline double __dadd_rn(double a, double b) {
  const volatile double result = a + b;
  return result;
}
inline double __dsub_rn(double a, double b) {
  const volatile double result = a - b;
  return result;
}
inline double __dmul_rn(double a, double b) {
  const volatile double result = a * b;
  return result;
}
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
inline int __popc(unsigned value) { return std::popcount(value); }
inline int __ffs(int value) { return value == 0 ? 0 : std::countr_zero(static_cast<unsigned>(value)) + 1; }
inline int atomicAdd(int* at, int value) { return std::atomic_ref<int>(*at).fetch_add(value); }
inline unsigned atomicAdd(unsigned* at, unsigned value) { return std::atomic_ref<unsigned>(*at).fetch_add(value); }
inline unsigned atomicOr(unsigned* at, unsigned bits) { return std::atomic_ref<unsigned>(*at).fetch_or(bits); }
