// Common code of the kernels of this directory, in addition to examples/kernels/geometry. They get columns as plain pointers, in
// the same order as the OpenCL kernels of the same names, so that the same host code launches both.
#pragma once

#include "rows.cuh"

// Boxes are four columns: all minimum x, all minimum y, all maximum x, all maximum y. The box of a null row is NaN,
// that of an empty row contains nothing. Both compare false with every point.
__device__ inline void store_box(double* sides, int rows, int row, Box box) {
  const size_t column = static_cast<size_t>(rows);
  sides[row] = box.min_x;
  sides[column + row] = box.min_y;
  sides[2 * column + row] = box.max_x;
  sides[3 * column + row] = box.max_y;
}

__device__ inline Box load_box(const double* sides, int rows, int row) {
  const size_t column = static_cast<size_t>(rows);
  return {sides[row], sides[column + row], sides[2 * column + row], sides[3 * column + row]};
}

// Returns whether the point is in the interior of the box, a necessary condition for being within its geometry.
__device__ inline bool surrounds(Box box, Point p) {
  return box.min_x < p.x && p.x < box.max_x && box.min_y < p.y && p.y < box.max_y;
}
