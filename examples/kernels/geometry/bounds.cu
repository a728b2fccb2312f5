// Bounding boxes of rows, of tiles of rows and of everything, and the pairs of boxes that overlap.
#include "block.cuh"

namespace {

// Loads several coordinates at a time, because the kernel is bound by memory only.
template <int Unrolled>
__device__ Box box_of_range(const Coordinates& at, Range range) {
  Box box = empty_box();
  int i = range.first;
  for (; i + Unrolled <= range.last; i += Unrolled) {
#pragma unroll
    for (int k = 0; k < Unrolled; ++k) box = joined(box, at[i + k]);
  }
  for (; i < range.last; ++i) box = joined(box, at[i]);
  return box;
}

__device__ void store(double* boxes, int rows, int row, Box box) {
  boxes[row] = box.min_x;
  boxes[rows + row] = box.min_y;
  boxes[2 * rows + row] = box.max_x;
  boxes[3 * rows + row] = box.max_y;
}

__device__ Box load(const double* boxes, int rows, int row) {
  return {boxes[row], boxes[rows + row], boxes[2 * rows + row], boxes[3 * rows + row]};
}

}  // namespace

// Computes the box of each row, one thread per row, for rows of few coordinates. `boxes` has four columns: all minimum
// x, all minimum y, all maximum x, all maximum y. The box of a null row is NaN and not valid; that of an empty row
// contains nothing and is valid.
template <class Column>
__global__ void bounds_of(Column column, double* boxes, unsigned* valid) {
  for (int row = first_row(); row < whole_warps(column.rows); row += row_step()) {
    const bool here = row < column.rows;
    const State state = here ? column.state(row) : State::Null;
    if (here) {
      Box box = null_box();
      if (state == State::Empty) box = empty_box();
      if (state == State::Present) box = box_of_range<4>(column.at, column.coordinates(row));
      store(boxes, column.rows, row, box);
    }
    write_bits(valid, row, state != State::Null);
  }
}

// Computes the box of each row, one warp per row, for rows of many coordinates: the lanes read adjacent coordinates.
template <class Column>
__global__ void bounds_of_long(Column column, double* boxes, unsigned char* states) {
  for (int row = first_warp(); row < column.rows; row += warp_step()) {
    const State state = column.state(row);
    Box box = empty_box();
    if (state == State::Present) {
      const Range range = column.coordinates(row);
      for (int i = range.first + lane(); i < range.last; i += 32) box = joined(box, column.at[i]);
    }
    box = over_warp<Joined>(box);
    if (lane() != 0) continue;
    store(boxes, column.rows, row, state == State::Null ? null_box() : box);
    states[row] = static_cast<unsigned char>(state);
  }
}

// Computes the minimum and maximum of `Width / 2` dimensions of interleaved coordinates, one result per block: min of
// each, then max of each. NaN, which empty points have, is ignored.
template <class T, int Width>
__global__ void bounds_reduce(const T* coordinates, int count, T* results) {
  constexpr int kDimensions = Width / 2;
  double least[kDimensions];
  double greatest[kDimensions];
#pragma unroll
  for (int d = 0; d < kDimensions; ++d) {
    least[d] = infinity();
    greatest[d] = -infinity();
  }
  for (int i = first_row(); i < count; i += row_step()) {
#pragma unroll
    for (int d = 0; d < kDimensions; ++d) {
      const double value = static_cast<double>(coordinates[static_cast<size_t>(i) * kDimensions + d]);
      if (value < least[d]) least[d] = value;
      if (value > greatest[d]) greatest[d] = value;
    }
  }
#pragma unroll
  for (int d = 0; d < kDimensions; ++d) {
    const double low = over_block<Least>(least[d]);
    const double high = over_block<Greatest>(greatest[d]);
    if (threadIdx.x != 0) continue;
    results[blockIdx.x * Width + d] = static_cast<T>(low);
    results[blockIdx.x * Width + kDimensions + d] = static_cast<T>(high);
  }
}

// Computes the boxes of tiles of `tile` rows each, one warp per tile. This is one level of a tree over rows in curve
// order. Null rows do not contribute: a NaN loses every comparison that `joined` makes with it on the right.
extern "C" __global__ void bounds_of_tiles(const double* boxes, int rows, int tile, double* tiles, int tile_count) {
  for (int number = first_warp(); number < tile_count; number += warp_step()) {
    const int end = smaller(rows, (number + 1) * tile);
    Box box = empty_box();
    for (int row = number * tile + lane(); row < end; row += 32) {
      const Box of_row = load(boxes, rows, row);
      if (is_number(of_row.min_x)) box = joined(box, of_row);
    }
    box = over_warp<Joined>(box);
    if (lane() == 0) store(tiles, tile_count, number, box);
  }
}

// Counts for each left row the right rows whose box overlaps. The caller needs the counts before the pairs can be
// written. The right column is staged in shared memory, 256 boxes at a time, so that a block reads it once.
extern "C" __global__ void bounds_count_overlaps(const double* left, int left_rows, const double* right, int right_rows,
                                                 double margin, int* counts) {
  __shared__ Box tile[256];
  const int row = first_row();
  Box mine = null_box();
  if (row < left_rows) {
    mine = load(left, left_rows, row);
    mine = {mine.min_x - margin, mine.min_y - margin, mine.max_x + margin, mine.max_y + margin};
  }
  int count = 0;
  for (int first = 0; first < right_rows; first += 256) {
    const int size = smaller(256, right_rows - first);
    for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) {
      tile[i] = load(right, right_rows, first + i);
    }
    __syncthreads();
    for (int i = 0; i < size; ++i) count += overlap(mine, tile[i]) ? 1 : 0;
    __syncthreads();
  }
  if (row < left_rows) counts[row] = count;
}

// Writes the pairs of each row from the row's offset on, in the order of the right rows.
extern "C" __global__ void bounds_fill_overlaps(const double* left, int left_rows, const double* right, int right_rows,
                                                double margin, const int* offsets, int* pairs_left, int* pairs_right) {
  __shared__ Box tile[256];
  const int row = first_row();
  Box mine = null_box();
  int next = 0;
  if (row < left_rows) {
    mine = load(left, left_rows, row);
    mine = {mine.min_x - margin, mine.min_y - margin, mine.max_x + margin, mine.max_y + margin};
    next = offsets[row];
  }
  for (int first = 0; first < right_rows; first += 256) {
    const int size = smaller(256, right_rows - first);
    for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) {
      tile[i] = load(right, right_rows, first + i);
    }
    __syncthreads();
    for (int i = 0; i < size; ++i) {
      if (!overlap(mine, tile[i])) continue;
      pairs_left[next] = row;
      pairs_right[next] = first + i;
      ++next;
    }
    __syncthreads();
  }
}
