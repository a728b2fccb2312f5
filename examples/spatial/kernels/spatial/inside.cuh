// Tests whether a point is within a row of rings, some of which are shells and some holes.
#pragma once

#include "columns.cuh"
#include "rings.cuh"

// Returns whether the point is inside an odd number of the rings and on none of them, which is correct for every valid
// polygon and multipolygon.
__device__ inline bool is_inside(Point p, const int* rings, const int* offsets, Coordinates at, int row) {
  bool inside = false;
  for (int ring = rings[row]; ring < rings[row + 1]; ++ring) {
    const Side side = side_of_ring(at, {offsets[ring], offsets[ring + 1]}, p);
    if (side == Side::Boundary) return false;
    if (side == Side::Inside) inside = !inside;
  }
  return inside;
}
