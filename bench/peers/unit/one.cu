// One kernel. The harness creates many different units from it by changing the number after VARIANT.
#include "tuning.h"

#define VARIANT 0

extern "C" __global__ void waves(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
#pragma unroll
  for (int k = 1; k <= 24; ++k) sum += scaled(in[i] / (k + VARIANT)) * sinf(in[i] * k);
  out[i] = sum;
}
