// The area of each row, in single precision.
#include "area.cuh"

extern "C" __global__ void area_fp32(int rows, const unsigned* valid, const unsigned* shells, const int* rings,
                                     const int* offsets, const double* x, const double* y, double* areas) {
  store_area<float>({rows, {valid}, rings, offsets, {x, y}}, shells, areas);
}
