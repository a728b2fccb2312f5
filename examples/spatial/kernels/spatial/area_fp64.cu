// The area of each row, in double precision.
#include "area.cuh"

extern "C" __global__ void area_fp64(int rows, const unsigned* valid, const unsigned* shells, const int* rings,
                                     const int* offsets, const double* x, const double* y, double* areas) {
  store_area<double>({rows, {valid}, rings, offsets, {x, y}}, shells, areas);
}
