// Finds the polygons whose box surrounds a point, among the members of its cell in each grid (grid.cl). They are first
// counted and then written, because the count determines the memory size.

// `ends` is the output of grid_fill: the end of the members of each cell, which is the start of the next. If `keys` is
// null it only counts. A key is the point's row above the polygon's row, which has `bits` bits, so that keys and pairs
// have the same order.
uint find_candidates(int point, __global const uint* valid, __global const double* px, __global const double* py,
                     int polygon_rows, __global const double* sides, int finest, __global const Grid* grid,
                     __global const uint* ends, __global const int* members, int bits, __global ulong* keys) {
  const double x = px[point];
  const double y = py[point];
  if (!is_valid(valid, point) || isnan(x)) return 0;
  int column = cell_along(x, grid->min_x, grid->scale_x, finest);
  int row = cell_along(y, grid->min_y, grid->scale_y, finest);
  uint found = 0;
  int first = 0;
  for (int width = finest; width >= 0; --width) {
    const int cell = first + (row << width) + column;
    const uint end = ends[cell];
    for (uint i = cell == 0 ? 0 : ends[cell - 1]; i < end; ++i) {
      const int polygon = members[i];
      if (!surrounds(sides, polygon_rows, polygon, x, y)) continue;
      if (keys != 0) keys[found] = ((ulong)point << bits) | (ulong)polygon;
      ++found;
    }
    first += 1 << (2 * width);
    column >>= 1;
    row >>= 1;
  }
  return found;
}

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void candidates_count(int rows, __global const uint* valid, __global const double* px, __global const double* py,
                      int polygon_rows, __global const double* sides, int finest, __global const Grid* grid,
                      __global const uint* ends, __global const int* members, __global uint* counts) {
  const size_t end = end_of_items(rows);
  for (size_t point = first_item(rows); point < end; point += ROWS) {
    counts[point] =
        find_candidates((int)point, valid, px, py, polygon_rows, sides, finest, grid, ends, members, 0, 0);
  }
}

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void candidates_write(int rows, __global const uint* valid, __global const double* px, __global const double* py,
                      int polygon_rows, __global const double* sides, int finest, __global const Grid* grid,
                      __global const uint* ends, __global const int* members, __global const uint* offsets, int bits,
                      __global ulong* keys) {
  const size_t end = end_of_items(rows);
  for (size_t point = first_item(rows); point < end; point += ROWS) {
    find_candidates((int)point, valid, px, py, polygon_rows, sides, finest, grid, ends, members, bits,
                    keys + offsets[point]);
  }
}
