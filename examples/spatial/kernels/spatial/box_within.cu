// Tests whether point i is within polygon i or, with a stride of 0, within polygon 0, for a column that has only
// rectangles with sides parallel to the axes: the box is the polygon. One thread writes one word of the bitmaps.
#include "columns.cuh"

extern "C" __global__ void box_within(int rows, int stride, const unsigned* point_valid, const double* px,
                                      const double* py, int polygon_rows, const unsigned* polygon_valid,
                                      const double* sides, unsigned* valid, unsigned* inside) {
  const int word = first_row();
  if (word >= rows / 32 + (rows % 32 != 0 ? 1 : 0)) return;
  const unsigned of_polygons = stride != 0 ? polygon_valid[word] : (polygon_valid[0] & 1u) != 0 ? ~0u : 0u;
  const unsigned known = point_valid[word] & of_polygons;
  unsigned found = 0;
  const int first = word * 32;
  for (int row = first, last = first + smaller(rows - first, 32); row < last; ++row) {
    if (surrounds(load_box(sides, polygon_rows, row * stride), {px[row], py[row]})) found |= 1u << (row & 31);
  }
  valid[word] = known;
  inside[word] = found & known;
}
