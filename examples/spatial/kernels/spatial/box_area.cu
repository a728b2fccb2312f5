// The area of each row of a column that has only rectangles with sides parallel to the axes: two opposite vertices are
// enough.
#include "columns.cuh"

extern "C" __global__ void box_area(int rows, const unsigned* valid, const int* rings, const int* offsets,
                                    const double* x, const double* y, double* areas) {
  const Polygons polygons = {rows, {valid}, rings, offsets, {x, y}};
  const int row = first_row();
  if (row >= rows) return;
  double area = polygons.valid[row] ? 0 : not_a_number();
  const Range range = polygons.coordinates(row);
  if (!range.empty()) {
    const Point diagonal = minus(polygons.at[range.first + 2], polygons.at[range.first]);
    area = fabs(diagonal.x * diagonal.y);
  }
  areas[row] = area;
}
