// Tests whether point i is within polygon i or, with a stride of 0, within polygon 0. The filter keeps the rows whose
// box surrounds the point, and examples/spatial/kernels/primitives/compact.cu numbers them, so that the refinement has no idle lanes.
#include "inside.cuh"

// Runs one thread per word of the bitmaps. A thread writes one word of each, and a warp iterates over the rows of its
// 32 words so that its lanes read adjacent rows.
extern "C" __global__ void within_filter(int rows, int stride, const unsigned* point_valid, const double* px,
                                         const double* py, int polygon_rows, const unsigned* polygon_valid,
                                         const double* sides, unsigned* valid, unsigned* inside, unsigned char* flags) {
  const int word = first_row();
  const int words = rows / 32 + (rows % 32 != 0 ? 1 : 0);
  if (word < words) {
    const unsigned of_polygons = stride != 0 ? polygon_valid[word] : (polygon_valid[0] & 1u) != 0 ? ~0u : 0u;
    valid[word] = point_valid[word] & of_polygons;
    inside[word] = 0;
  }
  for (int i = word - lane(), last = smaller(i + 32, words); i < last; ++i) {
    const int row = i * 32 + lane();
    if (row >= rows) continue;
    flags[row] = surrounds(load_box(sides, polygon_rows, row * stride), {px[row], py[row]}) ? 1 : 0;
  }
}

extern "C" __global__ void within_refine(const unsigned* count, const unsigned* chosen, int stride, const double* px,
                                         const double* py, const int* rings, const int* offsets, const double* x,
                                         const double* y, unsigned* inside) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= *count) return;
  const int row = static_cast<int>(chosen[i]);
  if (!is_inside({px[row], py[row]}, rings, offsets, {x, y}, row * stride)) return;
  atomicOr(inside + (row >> 5), 1u << (row & 31));
}
