// What the kernels of this folder have in common besides kernels/geometry: they get columns as bare pointers, in the
// order in which the OpenCL kernels of the same names get theirs, so that one host code launches either.
#pragma once

#include "rows.cuh"

// Boxes are four columns: all least x, all least y, all greatest x, all greatest y. The box of a null row is NaN, that
// of an empty one contains nothing. Both compare false with every point.
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

// Whether the point is in the box and on none of its sides, where alone it can be within what the box is of.
__device__ inline bool surrounds(Box box, Point p) {
  return box.min_x < p.x && p.x < box.max_x && box.min_y < p.y && p.y < box.max_y;
}
