// The area of each row of a column that has only rectangles with sides parallel to the axes: two opposite vertices are
// enough.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void box_area(int rows, __global const uint* valid, __global const int* rings, __global const int* offsets,
              __global const double* x, __global const double* y, __global double* areas) {
  const size_t end = end_of_items(rows);
  for (size_t row = first_item(rows); row < end; row += ROWS) {
    double area = is_valid(valid, (int)row) ? 0 : NAN;
    if (rings[row] < rings[row + 1]) {
      const int i = offsets[rings[row]];
      area = fabs((x[i + 2] - x[i]) * (y[i + 2] - y[i]));
    }
    areas[row] = area;
  }
}
