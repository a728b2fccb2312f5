// The boxes of points.
#include "columns.cuh"

extern "C" __global__ void point_bounds(int rows, const unsigned* valid, const double* x, const double* y,
                                        double* sides) {
  const Points points = {rows, {valid}, {x, y}};
  const int row = first_row();
  if (row >= rows) return;
  const State state = points.state(row);
  const Point p = points.at[row];
  const Box box = {p.x, p.y, p.x, p.y};
  store_box(sides, rows, row, state == State::Present ? box : state == State::Empty ? empty_box() : null_box());
}
