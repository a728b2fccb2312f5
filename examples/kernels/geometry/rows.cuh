// Assignment of rows to threads, and writing of bitmaps by warps.
#pragma once

#include "geometry.cuh"

__device__ inline int lane() { return static_cast<int>(threadIdx.x & 31u); }
__device__ inline int warp_in_block() { return static_cast<int>(threadIdx.x >> 5); }
__device__ inline int warps_in_block() { return static_cast<int>((blockDim.x + 31u) >> 5); }
__device__ inline int first_row() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
__device__ inline int row_step() { return static_cast<int>(gridDim.x * blockDim.x); }
__device__ inline int first_warp() { return static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) >> 5); }
__device__ inline int warp_step() { return static_cast<int>((gridDim.x * blockDim.x) >> 5); }

// Returns the number of rows rounded up to whole warps. Kernels that write a bitmap loop up to this number, because all
// lanes take part in a ballot. The lanes past the end do nothing else. Block sizes are multiples of 32.
__device__ inline int whole_warps(int rows) { return (rows + 31) & ~31; }

// Writes the bits of 32 rows at once. `words` can be null if they are not needed.
__device__ inline void write_bits(unsigned* words, int row, bool bit) {
  const unsigned ballot = __ballot_sync(0xffffffffu, bit);
  if (words != nullptr && lane() == 0) words[row >> 5] = ballot;
}

// Returns the row of an item: the last offset that is not greater than `item`. `offsets` has rows + 1 elements. Rows
// without items are skipped, because their offset equals the next one.
__device__ inline int row_of(const int* offsets, int rows, int item) {
  int low = 0;
  int high = rows;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (offsets[middle] <= item) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}
