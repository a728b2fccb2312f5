// Finds the polygons whose box surrounds a point, among the members of its cell in each grid (grid.cu). They are first
// counted and then written, because the count determines the memory size.
#include "grid.cuh"

namespace {

struct Index {
  int polygon_rows;
  const double* sides;
  int finest;
  const Grid* grid;
  const unsigned* ends;  // output of grid_fill: the end of the members of each cell, which is the start of the next
  const int* members;
};

template <class Visit>
__device__ void for_each_candidate(const Points& points, const Index& index, int row, Visit visit) {
  if (points.state(row) != State::Present) return;
  const Point p = points.at[row];
  int cell_x = cell_along(p.x, index.grid->min_x, index.grid->scale_x, index.finest);
  int cell_y = cell_along(p.y, index.grid->min_y, index.grid->scale_y, index.finest);
  int first = 0;
  for (int width = index.finest; width >= 0; --width) {
    const int cell = first + (cell_y << width) + cell_x;
    const unsigned end = index.ends[cell];
    for (unsigned i = cell == 0 ? 0 : index.ends[cell - 1]; i < end; ++i) {
      const int polygon = index.members[i];
      if (surrounds(load_box(index.sides, index.polygon_rows, polygon), p)) visit(polygon);
    }
    first += 1 << (2 * width);
    cell_x >>= 1;
    cell_y >>= 1;
  }
}

}  // namespace

extern "C" __global__ void candidates_count(int rows, const unsigned* valid, const double* px, const double* py,
                                            int polygon_rows, const double* sides, int finest, const Grid* grid,
                                            const unsigned* ends, const int* members, unsigned* counts) {
  const int row = first_row();
  if (row >= rows) return;
  unsigned found = 0;
  for_each_candidate({rows, {valid}, {px, py}}, {polygon_rows, sides, finest, grid, ends, members}, row,
                     [&](int) { ++found; });
  counts[row] = found;
}

// Writes keys. A key is the point's row above the polygon's row, which has `bits` bits, so that keys and pairs have the
// same order.
extern "C" __global__ void candidates_write(int rows, const unsigned* valid, const double* px, const double* py,
                                            int polygon_rows, const double* sides, int finest, const Grid* grid,
                                            const unsigned* ends, const int* members, const unsigned* offsets, int bits,
                                            unsigned long long* keys) {
  const int row = first_row();
  if (row >= rows) return;
  unsigned next = offsets[row];
  const unsigned long long of_point = static_cast<unsigned long long>(row) << bits;
  for_each_candidate({rows, {valid}, {px, py}}, {polygon_rows, sides, finest, grid, ends, members}, row,
                     [&](int polygon) { keys[next++] = of_point | static_cast<unsigned long long>(polygon); });
}
