// Sortable location codes: cells of a grid, and the two space-filling curves through them. A grid covers a box with
// cells of one size. A location outside belongs to the nearest cell at the edge.
#include "block.cuh"

namespace {

// Inserts a zero bit after each bit of a number.
template <class Code>
__device__ Code spread(Code value);

template <>
__device__ unsigned spread<unsigned>(unsigned value) {
  value &= 0x0000ffffu;
  value = (value | (value << 8)) & 0x00ff00ffu;
  value = (value | (value << 4)) & 0x0f0f0f0fu;
  value = (value | (value << 2)) & 0x33333333u;
  return (value | (value << 1)) & 0x55555555u;
}

template <>
__device__ unsigned long long spread<unsigned long long>(unsigned long long value) {
  value &= 0x00000000ffffffffULL;
  value = (value | (value << 16)) & 0x0000ffff0000ffffULL;
  value = (value | (value << 8)) & 0x00ff00ff00ff00ffULL;
  value = (value | (value << 4)) & 0x0f0f0f0f0f0f0f0fULL;
  value = (value | (value << 2)) & 0x3333333333333333ULL;
  return (value | (value << 1)) & 0x5555555555555555ULL;
}

// Maps a coordinate to one of 2^bits numbers. NaN becomes 0.
__device__ unsigned quantised(double value, double low, double high, int bits) {
  const double cells = static_cast<double>(1ULL << bits);
  const double at = high > low ? (value - low) / (high - low) * cells : 0;
  return static_cast<unsigned>(clamped(is_number(at) ? at : 0, 0.0, cells - 1));
}

// Returns the position of a cell on the Hilbert curve of 2^bits by 2^bits cells. From the top bit down, the curve of
// each quadrant is that of its parent, rotated or mirrored.
__device__ unsigned long long along_hilbert(unsigned x, unsigned y, int bits) {
  unsigned long long code = 0;
  for (int bit = bits - 1; bit >= 0; --bit) {
    const unsigned right = (x >> bit) & 1u;
    const unsigned up = (y >> bit) & 1u;
    code = (code << 2) | ((3u * right) ^ up);
    if (up == 0) {
      if (right == 1) {
        const unsigned all = (bit == 0) ? 0u : (1u << bit) - 1u;
        x = all - (x & all);
        y = all - (y & all);
      }
      const unsigned swapped = x;
      x = y;
      y = swapped;
    }
  }
  return code;
}

}  // namespace

struct Grid {
  Box box;
  int columns;
  int rows;

  __device__ int column(double x) const {
    const double at = (x - box.min_x) / (box.max_x - box.min_x) * columns;
    return static_cast<int>(clamped(at, 0.0, columns - 1.0));
  }
  __device__ int row(double y) const {
    const double at = (y - box.min_y) / (box.max_y - box.min_y) * rows;
    return static_cast<int>(clamped(at, 0.0, rows - 1.0));
  }
  __device__ int cell(Point p) const { return row(p.y) * columns + column(p.x); }
};

namespace {

struct Cells {
  int first_column;
  int last_column;
  int first_row;
  int last_row;
  __device__ int count() const { return (last_column - first_column + 1) * (last_row - first_row + 1); }
};

__device__ Box box_at(const double* boxes, int rows, int row) {
  return {boxes[row], boxes[rows + row], boxes[2 * rows + row], boxes[3 * rows + row]};
}

// Computes the cells that a box covers. Returns false for the box of a null or an empty row, which covers none.
__device__ bool cells_of(const Grid& grid, Box box, Cells& cells) {
  if (!(box.min_x <= box.max_x && box.min_y <= box.max_y)) return false;
  cells = {grid.column(box.min_x), grid.column(box.max_x), grid.row(box.min_y), grid.row(box.max_y)};
  return true;
}

}  // namespace

// Computes Morton codes, which interleave the bits: 16 bits per coordinate in 32, 32 in 64. Null and empty points get
// the maximum code, which sorts them after all others.
template <class Code>
__global__ void morton_codes(Points points, Box box, Code* codes) {
  constexpr int kBits = sizeof(Code) * 4;
  for (int row = first_row(); row < points.rows; row += row_step()) {
    Code code = ~Code(0);
    if (points.state(row) == State::Present) {
      const Code x = quantised(points.at.x[row], box.min_x, box.max_x, kBits);
      const Code y = quantised(points.at.y[row], box.min_y, box.max_y, kBits);
      code = spread<Code>(x) | (spread<Code>(y) << 1);
    }
    codes[row] = code;
  }
}

// Computes Hilbert codes of box centers, the sort key of a packed tree. Neighbors on the Hilbert curve are also
// neighbors in space.
extern "C" __global__ void hilbert_codes(const double* boxes, int rows, Box all, int bits, unsigned long long* codes) {
  for (int row = first_row(); row < rows; row += row_step()) {
    const Box box = box_at(boxes, rows, row);
    unsigned long long code = ~0ULL;
    if (box.min_x <= box.max_x) {
      const double x = box.min_x + (box.max_x - box.min_x) / 2;
      const double y = box.min_y + (box.max_y - box.min_y) / 2;
      code = along_hilbert(quantised(x, all.min_x, all.max_x, bits), quantised(y, all.min_y, all.max_y, bits), bits);
    }
    codes[row] = code;
  }
}

// Counts the points in each cell. Adjacent rows are often in the same cell, so the lanes of a warp with the same cell
// do one atomic addition together.
extern "C" __global__ void grid_count_points(Points points, Grid grid, int* cells, int* counts) {
  for (int row = first_row(); row < whole_warps(points.rows); row += row_step()) {
    const bool present = row < points.rows && points.state(row) == State::Present;
    const int cell = present ? grid.cell(points.at[row]) : -1;
    if (row < points.rows) cells[row] = cell;
    const unsigned alike = __match_any_sync(0xffffffffu, cell);
    const bool first = (__ffs(static_cast<int>(alike)) - 1) == lane();
    if (present && first) atomicAdd(counts + cell, __popc(alike));
  }
}

// Counts the boxes that overlap each cell, and the cells that each box overlaps.
extern "C" __global__ void grid_count_boxes(const double* boxes, int rows, Grid grid, int* counts, int* cells_of_rows) {
  for (int row = first_row(); row < rows; row += row_step()) {
    Cells cells = {0, -1, 0, -1};
    const bool any = cells_of(grid, box_at(boxes, rows, row), cells);
    cells_of_rows[row] = any ? cells.count() : 0;
    for (int y = cells.first_row; any && y <= cells.last_row; ++y) {
      for (int x = cells.first_column; x <= cells.last_column; ++x) atomicAdd(counts + y * grid.columns + x, 1);
    }
  }
}

// Writes the rows of each cell consecutively. `next` starts as the offset of each cell and ends as that of the cell
// after it. Within a cell the order depends on the atomics; a caller that needs an order must sort.
extern "C" __global__ void grid_fill_boxes(const double* boxes, int rows, Grid grid, int* next, int* members) {
  for (int row = first_row(); row < rows; row += row_step()) {
    Cells cells;
    if (!cells_of(grid, box_at(boxes, rows, row), cells)) continue;
    for (int y = cells.first_row; y <= cells.last_row; ++y) {
      for (int x = cells.first_column; x <= cells.last_column; ++x) {
        members[atomicAdd(next + y * grid.columns + x, 1)] = row;
      }
    }
  }
}

// Finds the candidates of each query box: members of the covered cells whose boxes overlap it. A pair that several
// cells share is reported only by the cell with the lower left corner of the intersection of the two boxes. If
// `pairs_left` is null it only counts; otherwise it writes from the offsets on.
extern "C" __global__ void grid_candidates(const double* queries, int query_rows, const double* boxes, int rows,
                                           Grid grid, const int* offsets, const int* members, int* counts,
                                           const int* pair_offsets, int* pairs_left, int* pairs_right) {
  for (int query = first_row(); query < query_rows; query += row_step()) {
    const Box box = box_at(queries, query_rows, query);
    Cells cells = {0, -1, 0, -1};
    const bool any = cells_of(grid, box, cells);
    int found = 0;
    for (int y = cells.first_row; any && y <= cells.last_row; ++y) {
      for (int x = cells.first_column; x <= cells.last_column; ++x) {
        const int cell = y * grid.columns + x;
        for (int i = offsets[cell]; i < offsets[cell + 1]; ++i) {
          const Box other = box_at(boxes, rows, members[i]);
          if (!overlap(box, other)) continue;
          const Point corner = {larger(box.min_x, other.min_x), larger(box.min_y, other.min_y)};
          if (grid.cell(corner) != cell) continue;
          if (pairs_left != nullptr) {
            pairs_left[pair_offsets[query] + found] = query;
            pairs_right[pair_offsets[query] + found] = members[i];
          }
          ++found;
        }
      }
    }
    if (counts != nullptr) counts[query] = found;
  }
}
