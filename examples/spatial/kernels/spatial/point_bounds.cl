// The boxes of points.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void point_bounds(int rows, __global const uint* valid, __global const double* x, __global const double* y,
                  __global double* sides) {
  const size_t end = end_of_items(rows);
  for (size_t row = first_item(rows); row < end; row += ROWS) {
    if (!is_valid(valid, (int)row)) {
      store_box(sides, rows, (int)row, NAN, NAN, NAN, NAN);
    } else if (isnan(x[row])) {
      store_box(sides, rows, (int)row, INFINITY, INFINITY, -INFINITY, -INFINITY);
    } else {
      store_box(sides, rows, (int)row, x[row], y[row], x[row], y[row]);
    }
  }
}
