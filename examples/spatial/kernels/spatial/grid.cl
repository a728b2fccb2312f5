// Puts the boxes of polygons into grids (grid.clh): count the entries of each cell, scan the counts (scan.cl), fill.

// Returns the level of the grid that a box is in (the number of finer grids); -1 for the empty box.
int level_of(__global const double* sides, int rows, int row, Grid grid, int finest, int4* cells) {
  const double min_x = sides[row];
  const double max_x = sides[2 * (size_t)rows + row];
  if (!(min_x <= max_x)) return -1;
  int4 all = (int4)(cell_along(min_x, grid.min_x, grid.scale_x, finest),
                    cell_along(sides[(size_t)rows + row], grid.min_y, grid.scale_y, finest),
                    cell_along(max_x, grid.min_x, grid.scale_x, finest),
                    cell_along(sides[3 * (size_t)rows + row], grid.min_y, grid.scale_y, finest));
  int level = 0;
  for (; all.z - all.x >= SPAN || all.w - all.y >= SPAN; ++level) all >>= 1;
  *cells = all;
  return level;
}

// Returns the index of the first cell of a grid.
int first_cell(int level, int finest) {
  int first = 0;
  for (int i = 0; i < level; ++i) first += 1 << (2 * (finest - i));
  return first;
}

// Computes the extent of the grids, with one work group, and clears all counts, with all of them.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void grid_begin(int rows, __global const double* sides, int finest, __global Grid* grid, int cells,
                __global uint* counts) {
  __local double4 found[ROWS];
  const int me = (int)get_local_id(0);
  for (int i = (int)get_global_id(0); i < cells; i += (int)get_global_size(0)) counts[i] = 0;
  double4 box = (double4)(INFINITY, INFINITY, -INFINITY, -INFINITY);
  if (get_group_id(0) == 0) {
    for (int row = me; row < rows; row += ROWS) {
      const double4 own = (double4)(sides[row], sides[(size_t)rows + row], sides[2 * (size_t)rows + row],
                                    sides[3 * (size_t)rows + row]);
      box = (double4)(fmin(box.x, own.x), fmin(box.y, own.y), fmax(box.z, own.z), fmax(box.w, own.w));
    }
  }
  found[me] = box;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_global_id(0) != 0) return;
  for (int i = 1; i < ROWS; ++i) {
    box = (double4)(fmin(box.x, found[i].x), fmin(box.y, found[i].y), fmax(box.z, found[i].z), fmax(box.w, found[i].w));
  }
  const double side = (double)(1 << finest);
  grid->min_x = box.x;
  grid->min_y = box.y;
  grid->scale_x = box.z > box.x ? side / (box.z - box.x) : 0;
  grid->scale_y = box.w > box.y ? side / (box.w - box.y) : 0;
}

__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void grid_count(int rows, __global const double* sides, int finest, __global const Grid* grid, __global uint* counts) {
  const size_t end = end_of_items(rows);
  for (size_t row = first_item(rows); row < end; row += ROWS) {
    int4 cells;
    const int level = level_of(sides, rows, (int)row, *grid, finest, &cells);
    if (level < 0) continue;
    __global uint* const of_level = counts + first_cell(level, finest);
    for (int y = cells.y; y <= cells.w; ++y) {
      for (int x = cells.x; x <= cells.z; ++x) atomic_inc(of_level + ((y << (finest - level)) + x));
    }
  }
}

// Writes the rows of each cell consecutively. `next` starts as the offset of each cell and ends as that of the cell
// after it. Within a cell the order depends on the atomics; the join sorts its result.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void grid_fill(int rows, __global const double* sides, int finest, __global const Grid* grid, __global uint* next,
               __global int* members) {
  const size_t end = end_of_items(rows);
  for (size_t row = first_item(rows); row < end; row += ROWS) {
    int4 cells;
    const int level = level_of(sides, rows, (int)row, *grid, finest, &cells);
    if (level < 0) continue;
    __global uint* const of_level = next + first_cell(level, finest);
    for (int y = cells.y; y <= cells.w; ++y) {
      for (int x = cells.x; x <= cells.z; ++x) {
        members[atomic_inc(of_level + ((y << (finest - level)) + x))] = (int)row;
      }
    }
  }
}
