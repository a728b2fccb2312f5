// Reductions over the lanes of a warp and over the warps of a block. An operation has `T none()`, its identity element,
// and `T join(T, T)`.
#pragma once

#include "rows.cuh"

__device__ inline double shuffled(double value, int distance) { return __shfl_xor_sync(0xffffffffu, value, distance); }
__device__ inline int shuffled(int value, int distance) { return __shfl_xor_sync(0xffffffffu, value, distance); }
__device__ inline Box shuffled(Box box, int distance) {
  return {shuffled(box.min_x, distance), shuffled(box.min_y, distance), shuffled(box.max_x, distance),
          shuffled(box.max_y, distance)};
}

template <class T>
struct Sum {
  __device__ static T none() { return T(0); }
  __device__ static T join(T a, T b) { return a + b; }
};

struct Least {
  __device__ static double none() { return infinity(); }
  __device__ static double join(double a, double b) { return smaller(a, b); }
};

struct Greatest {
  __device__ static double none() { return -infinity(); }
  __device__ static double join(double a, double b) { return larger(a, b); }
};

struct Joined {
  __device__ static Box none() { return empty_box(); }
  __device__ static Box join(Box a, Box b) { return joined(a, b); }
};

// A value and its index. Of equal values the lower index wins, so that the result does not depend on the order of the
// threads.
struct Placed {
  double value;
  int place;
};

__device__ inline Placed shuffled(Placed placed, int distance) {
  return {shuffled(placed.value, distance), shuffled(placed.place, distance)};
}

struct LeastPlaced {
  __device__ static Placed none() { return {infinity(), 0x7fffffff}; }
  __device__ static Placed join(Placed a, Placed b) {
    if (a.value != b.value) return a.value < b.value ? a : b;
    return a.place < b.place ? a : b;
  }
};

struct GreatestPlaced {
  __device__ static Placed none() { return {-infinity(), 0x7fffffff}; }
  __device__ static Placed join(Placed a, Placed b) {
    if (a.value != b.value) return a.value > b.value ? a : b;
    return a.place < b.place ? a : b;
  }
};

// Reduces over the warp. Every lane gets the result.
template <class Operation, class T>
__device__ T over_warp(T value) {
  for (int distance = 16; distance > 0; distance /= 2) value = Operation::join(value, shuffled(value, distance));
  return value;
}

// Reduces over the block. Every thread of the block must call it and gets the result. A block has at most 1,024
// threads.
template <class Operation, class T>
__device__ T over_block(T value) {
  __shared__ T of_warps[32];
  value = over_warp<Operation>(value);
  if (lane() == 0) of_warps[warp_in_block()] = value;
  __syncthreads();
  T all = Operation::none();
  for (int i = 0; i < warps_in_block(); ++i) all = Operation::join(all, of_warps[i]);
  __syncthreads();  // the next call writes to the memory that this one reads
  return all;
}

// Returns the sum of the values of all lanes before this one.
__device__ inline int sum_before_in_warp(int value) {
  int sum = value;
  for (int distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, sum, static_cast<unsigned>(distance));
    if (lane() >= distance) sum += other;
  }
  return sum - value;
}

// Returns the sum of the values of all threads of the block before this one. Sets `total` to the sum of all.
__device__ inline int sum_before_in_block(int value, int& total) {
  __shared__ int of_warps[32];
  const int before = sum_before_in_warp(value);
  if (lane() == 31) of_warps[warp_in_block()] = before + value;
  __syncthreads();
  int earlier = 0;
  total = 0;
  for (int i = 0; i < warps_in_block(); ++i) {
    if (i < warp_in_block()) earlier += of_warps[i];
    total += of_warps[i];
  }
  __syncthreads();
  return earlier + before;
}
