// The boxes of points.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void point_bounds(int rows, __global const uint* valid, __global const double* x, __global const double* y,
                  __global double* sides) {
  const int row = (int)get_global_id(0);
  if (row >= rows) return;
  const bool empty = isnan(x[row]) != 0;
  if (!is_valid(valid, row)) {
    store_box(sides, rows, row, NAN, NAN, NAN, NAN);
  } else if (empty) {
    store_box(sides, rows, row, INFINITY, INFINITY, -INFINITY, -INFINITY);
  } else {
    store_box(sides, rows, row, x[row], y[row], x[row], y[row]);
  }
}
