// The area of a ring. Coordinates are taken relative to the first vertex in double precision; products and sums are
// computed in `Real`, with compensated sums. examples/spatial/README.md has the error bounds.
#pragma once

#include "columns.cuh"

template <class Real>
__device__ inline double ring_area(Coordinates at, Range ring) {
  Real sum = 0;
  Real lost = 0;
  Real before_x = 0;
  Real before_y = 0;
  for (int i = ring.first + 1; i < ring.last; ++i) {
    const Point offset = minus(at[i], at[ring.first]);
    const Real here_x = static_cast<Real>(offset.x);
    const Real here_y = static_cast<Real>(offset.y);
    const Real term = before_x * here_y - here_x * before_y;
    const Real next = sum + term;
    const Real part = next - sum;
    lost += (sum - (next - part)) + (term - part);
    sum = next;
    before_x = here_x;
    before_y = here_y;
  }
  return fabs(static_cast<double>(sum) + static_cast<double>(lost)) / 2;
}

// Writes the area of the thread's row: the areas of its shells minus those of its holes.
template <class Real>
__device__ inline void store_area(const Polygons& polygons, const unsigned* shells, double* areas) {
  const int row = first_row();
  if (row >= polygons.rows) return;
  const Validity is_shell = {shells};
  double area = polygons.valid[row] ? 0 : not_a_number();
  for (int ring = polygons.rings[row]; ring < polygons.rings[row + 1]; ++ring) {
    const double of_ring = ring_area<Real>(polygons.at, polygons.ring(ring));
    area += is_shell[ring] ? of_ring : -of_ring;
  }
  areas[row] = area;
}
