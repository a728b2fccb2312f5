// Selects the candidates of a join that are pairs of its result.
#include "inside.cuh"

extern "C" __global__ void refine_candidates(unsigned count, const unsigned long long* keys, int bits, const double* px,
                                             const double* py, const int* rings, const int* offsets, const double* x,
                                             const double* y, unsigned char* flags) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int point = static_cast<int>(keys[i] >> bits);
  const int polygon = static_cast<int>(keys[i] & ((1ULL << bits) - 1));
  flags[i] = is_inside({px[point], py[point]}, rings, offsets, {x, y}, polygon) ? 1 : 0;
}
