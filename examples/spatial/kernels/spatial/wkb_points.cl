// Points as WKB. A null row has no bytes; an empty point has NaN for both coordinates.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void wkb_point_sizes(int rows, __global const uint* valid, __global uint* sizes) {
  const size_t end = end_of_items(rows);
  for (size_t row = first_item(rows); row < end; row += ROWS) sizes[row] = is_valid(valid, (int)row) ? WKB_POINT_SIZE : 0;
}

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void wkb_points(int rows, __global const uint* valid, __global const double* x, __global const double* y,
                __global const uint* offsets, __global uchar* bytes) {
  const size_t end = end_of_items(rows);
  for (size_t row = first_item(rows); row < end; row += ROWS) {
    if (!is_valid(valid, (int)row)) continue;
    __global uchar* const at = bytes + offsets[row];
    put_type(at, WKB_POINT);
    put_double(at + 5, x[row]);
    put_double(at + 13, y[row]);
  }
}
