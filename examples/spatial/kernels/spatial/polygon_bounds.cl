// The boxes of polygons. Shells and holes are not distinguished: holes are inside shells and do not extend the box.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void polygon_bounds(int rows, __global const uint* valid, __global const int* rings, __global const int* offsets,
                    __global const double* x, __global const double* y, __global double* sides) {
  const size_t end = end_of_items(rows);
  for (size_t row = first_item(rows); row < end; row += ROWS) {
    if (!is_valid(valid, (int)row)) {
      store_box(sides, rows, (int)row, NAN, NAN, NAN, NAN);
      continue;
    }
    double min_x = INFINITY;
    double min_y = INFINITY;
    double max_x = -INFINITY;
    double max_y = -INFINITY;
    const int last = offsets[rings[row + 1]];
    for (int i = offsets[rings[row]]; i < last; ++i) {
      min_x = x[i] < min_x ? x[i] : min_x;
      min_y = y[i] < min_y ? y[i] : min_y;
      max_x = x[i] > max_x ? x[i] : max_x;
      max_y = y[i] > max_y ? y[i] : max_y;
    }
    store_box(sides, rows, (int)row, min_x, min_y, max_x, max_y);
  }
}
