// The boxes of polygons. Shells and holes are not distinguished: holes are inside shells and do not extend the box.
#include "columns.cuh"

extern "C" __global__ void polygon_bounds(int rows, const unsigned* valid, const int* rings, const int* offsets,
                                          const double* x, const double* y, double* sides) {
  const Polygons polygons = {rows, {valid}, rings, offsets, {x, y}};
  const int row = first_row();
  if (row >= rows) return;
  Box box = empty_box();
  const Range range = polygons.coordinates(row);
  for (int i = range.first; i < range.last; ++i) box = joined(box, polygons.at[i]);
  store_box(sides, rows, row, polygons.valid[row] ? box : null_box());
}
