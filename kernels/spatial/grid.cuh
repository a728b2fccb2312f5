// Grids over the boxes of polygons, one on top of the other: the finest has 2^finest by 2^finest cells, each further
// one half as many in each direction, the last has one. A box is in the finest grid of which it covers at most 4 by 4
// cells, so that there are at most 16 entries of each, however large it is. Cells are numbered from the finest grid on.
#pragma once

#include "columns.cuh"

struct Grid {
  double min_x;
  double min_y;
  double scale_x;  // cells of the finest grid per unit
  double scale_y;
};

// Monotonic, so that a point in a box is in a cell of that box; also where a width is zero or overflows.
__device__ inline int cell_along(double value, double least, double scale, int finest) {
  const double at = (value - least) * scale;
  return at > 0 ? static_cast<int>(smaller(at, static_cast<double>((1 << finest) - 1))) : 0;
}
