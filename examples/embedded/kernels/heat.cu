#include "grid.cuh"

// Computes one explicit step of the heat equation, one thread per point. The launch can be rounded up to whole blocks.
extern "C" __global__ void heat_step(int width, float rate, const float* from, float* to) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= width) return;
  const Grid grid{width};
  const float here = from[grid.at(x, y)];
  const float around =
      from[grid.at(x - 1, y)] + from[grid.at(x + 1, y)] + from[grid.at(x, y - 1)] + from[grid.at(x, y + 1)];
  to[grid.at(x, y)] = here + rate * (around - 4 * here);
}
