// Puts the boxes of polygons into grids (grid.cuh): count the entries of each cell, scan the counts, fill.
#include "block.cuh"
#include "grid.cuh"

namespace {

constexpr int kSpan = 4;

// The cells of one grid that a box covers.
struct Cells {
  int grid;  // level of the grid (the number of finer grids); -1 for the empty box
  int min_x;
  int min_y;
  int max_x;
  int max_y;
};

__device__ Cells cells_of(Box box, const Grid& grid, int finest) {
  if (!(box.min_x <= box.max_x)) return {-1, 0, 0, 0, 0};
  Cells cells = {0, cell_along(box.min_x, grid.min_x, grid.scale_x, finest),
                 cell_along(box.min_y, grid.min_y, grid.scale_y, finest),
                 cell_along(box.max_x, grid.min_x, grid.scale_x, finest),
                 cell_along(box.max_y, grid.min_y, grid.scale_y, finest)};
  while (cells.max_x - cells.min_x >= kSpan || cells.max_y - cells.min_y >= kSpan) {
    cells = {cells.grid + 1, cells.min_x >> 1, cells.min_y >> 1, cells.max_x >> 1, cells.max_y >> 1};
  }
  return cells;
}

// Calls `visit` with the index of each cell among the cells of all grids.
template <class Visit>
__device__ void for_each_cell(const Cells& cells, int finest, Visit visit) {
  if (cells.grid < 0) return;
  int first = 0;
  for (int i = 0; i < cells.grid; ++i) first += 1 << (2 * (finest - i));
  for (int y = cells.min_y; y <= cells.max_y; ++y) {
    for (int x = cells.min_x; x <= cells.max_x; ++x) visit(first + (y << (finest - cells.grid)) + x);
  }
}

}  // namespace

// Computes the extent of the grids, with one block, and clears all counts, with all of them.
extern "C" __global__ void grid_begin(int rows, const double* sides, int finest, Grid* grid, int cells,
                                      unsigned* counts) {
  for (int i = first_row(); i < cells; i += row_step()) counts[i] = 0;
  if (blockIdx.x != 0) return;
  Box box = empty_box();
  for (int row = static_cast<int>(threadIdx.x); row < rows; row += static_cast<int>(blockDim.x)) {
    const Box own = load_box(sides, rows, row);
    if (own.min_x <= own.max_x) box = joined(box, own);
  }
  box = over_block<Joined>(box);
  if (threadIdx.x != 0) return;
  const double side = static_cast<double>(1 << finest);
  *grid = {box.min_x, box.min_y, box.max_x > box.min_x ? side / (box.max_x - box.min_x) : 0,
           box.max_y > box.min_y ? side / (box.max_y - box.min_y) : 0};
}

extern "C" __global__ void grid_count(int rows, const double* sides, int finest, const Grid* grid, unsigned* counts) {
  const int row = first_row();
  if (row >= rows) return;
  const Cells cells = cells_of(load_box(sides, rows, row), *grid, finest);
  for_each_cell(cells, finest, [&](int cell) { atomicAdd(counts + cell, 1u); });
}

// Writes the rows of each cell consecutively. `next` starts as the offset of each cell and ends as that of the cell
// after it. Within a cell the order depends on the atomics; the join sorts its result.
extern "C" __global__ void grid_fill(int rows, const double* sides, int finest, const Grid* grid, unsigned* next,
                                     int* members) {
  const int row = first_row();
  if (row >= rows) return;
  const Cells cells = cells_of(load_box(sides, rows, row), *grid, finest);
  for_each_cell(cells, finest, [&](int cell) { members[atomicAdd(next + cell, 1u)] = row; });
}
