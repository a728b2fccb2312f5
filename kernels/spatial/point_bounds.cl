// The boxes of points.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void point_bounds(int rows, __global const uint* valid, __global const double* x, __global const double* y,
                  __global double* sides) {
  for (size_t row = get_global_id(0); row < (size_t)rows; row += get_global_size(0)) {
    if (!is_valid(valid, (int)row)) {
      store_box(sides, rows, (int)row, NAN, NAN, NAN, NAN);
    } else if (isnan(x[row])) {
      store_box(sides, rows, (int)row, INFINITY, INFINITY, -INFINITY, -INFINITY);
    } else {
      store_box(sides, rows, (int)row, x[row], y[row], x[row], y[row]);
    }
  }
}
