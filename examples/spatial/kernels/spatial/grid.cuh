// A hierarchy of grids over the boxes of polygons: the finest has 2^finest by 2^finest cells, each further one half as
// many in each direction, and the last has one. A box is in the finest grid in which it covers at most 4 by 4 cells, so
// that it has at most 16 entries regardless of its size. Cells are numbered from the finest grid on.
#pragma once

#include "columns.cuh"

struct Grid {
  double min_x;
  double min_y;
  double scale_x;  // cells of the finest grid per unit
  double scale_y;
};

// Monotonic, so that a point in a box is in a cell of that box, even if a width is zero or overflows.
__device__ inline int cell_along(double value, double least, double scale, int finest) {
  const double at = (value - least) * scale;
  return at > 0 ? static_cast<int>(smaller(at, static_cast<double>((1 << finest) - 1))) : 0;
}
