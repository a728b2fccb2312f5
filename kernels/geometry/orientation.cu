// Predicates by themselves, the directions of rings, and the steps of a convex hull, which is made of nothing else.
#include "block.cuh"
#include "rings.cuh"

namespace {

// Whether d lies within the circle through a, b, c, which turn to the left: the determinant of the lifted differences.
// In doubles where its bound allows, else in double-double, which leaves an error of about 2^-100 of the terms.
__device__ double in_circle(Point a, Point b, Point c, Point d) {
  const Point ad = minus(a, d);
  const Point bd = minus(b, d);
  const Point cd = minus(c, d);
  const double bc = cross(bd, cd);
  const double ca = cross(cd, ad);
  const double ab = cross(ad, bd);
  const double determinant = dot(ad, ad) * bc + dot(bd, bd) * ca + dot(cd, cd) * ab;
  const double magnitude = dot(ad, ad) * (fabs(bd.x * cd.y) + fabs(bd.y * cd.x)) +
                           dot(bd, bd) * (fabs(cd.x * ad.y) + fabs(cd.y * ad.x)) +
                           dot(cd, cd) * (fabs(ad.x * bd.y) + fabs(ad.y * bd.x));
  constexpr double kBound = 1.1102230246251577e-15;  // (10 + 96 e) e
  if (fabs(determinant) > kBound * magnitude) return determinant;
  const DoubleDouble adx = difference(a.x, d.x);
  const DoubleDouble ady = difference(a.y, d.y);
  const DoubleDouble bdx = difference(b.x, d.x);
  const DoubleDouble bdy = difference(b.y, d.y);
  const DoubleDouble cdx = difference(c.x, d.x);
  const DoubleDouble cdy = difference(c.y, d.y);
  const DoubleDouble first = (adx * adx + ady * ady) * (bdx * cdy - bdy * cdx);
  const DoubleDouble second = (bdx * bdx + bdy * bdy) * (cdx * ady - cdy * adx);
  const DoubleDouble third = (cdx * cdx + cdy * cdy) * (adx * bdy - ady * bdx);
  return (first + second + third).high;
}

// How far a point lies to the left of the line from a to b, in units of its length: what farthest points are chosen by.
__device__ double height_over(Point a, Point b, Point p) { return cross(minus(b, a), minus(p, a)); }

}  // namespace

// 1 left, 0 on the line, -1 right: of each row's three points.
extern "C" __global__ void orientation_of_points(Points a, Points b, Points c, signed char* turns, unsigned* valid) {
  for (int row = first_row(); row < whole_warps(a.rows); row += row_step()) {
    bool present = false;
    if (row < a.rows) {
      present = a.state(row) == State::Present && b.state(row) == State::Present && c.state(row) == State::Present;
      turns[row] = present ? static_cast<signed char>(orientation(a.at[row], b.at[row], c.at[row])) : 0;
    }
    write_bits(valid, row, present);
  }
}

// 1 where d is within the circle through a, b and c, 0 where it is on it, -1 where it is outside, whichever way the
// three turn; 0 and not valid where they are on one line, which no circle goes through.
extern "C" __global__ void in_circle_of_points(Points a, Points b, Points c, Points d, signed char* sides,
                                               unsigned* valid) {
  for (int row = first_row(); row < whole_warps(a.rows); row += row_step()) {
    bool known = false;
    if (row < a.rows) {
      known = a.state(row) == State::Present && b.state(row) == State::Present && c.state(row) == State::Present &&
              d.state(row) == State::Present;
      const int turn = known ? orientation(a.at[row], b.at[row], c.at[row]) : 0;
      known = known && turn != 0;
      sides[row] = 0;
      if (known) {
        sides[row] = static_cast<signed char>(turn * sign_of(in_circle(a.at[row], b.at[row], c.at[row], d.at[row])));
      }
    }
    write_bits(valid, row, known);
  }
}

// Which way each ring goes: 1 to the left, -1 to the right, 0 where it has no area. By the turn at its lowest vertex,
// the rightmost of several: that one is on the hull, so the turn is the ring's, and it is exact where a sum of areas is
// not.
extern "C" __global__ void orientation_of_rings(Lines rings, signed char* turns) {
  for (int row = first_row(); row < rings.rows; row += row_step()) {
    const Range range = rings.coordinates(row);
    turns[row] = 0;
    if (range.size() < 4) continue;
    const int edges = range.size() - 1;
    int lowest = 0;
    for (int i = 1; i < edges; ++i) {
      const Point p = rings.at[range.first + i];
      const Point best = rings.at[range.first + lowest];
      if (p.y < best.y || (p.y == best.y && p.x > best.x)) lowest = i;
    }
    const Point middle = rings.at[range.first + lowest];
    int before = lowest;
    int after = lowest;
    // Coordinates that are there twice have no direction.
    for (int i = 0; i < edges && same(rings.at[range.first + before], middle); ++i)
      before = (before + edges - 1) % edges;
    for (int i = 0; i < edges && same(rings.at[range.first + after], middle); ++i) after = (after + 1) % edges;
    const int turn = orientation(rings.at[range.first + before], middle, rings.at[range.first + after]);
    turns[row] = static_cast<signed char>(turn);
  }
}

// How many vertices of each ring turn to the left, to the right, and not at all: a ring is convex where one of the
// first two is 0. One warp a ring.
extern "C" __global__ void turns_of_rings(Lines rings, int* left, int* right, int* straight) {
  for (int row = first_warp(); row < rings.rows; row += warp_step()) {
    const Range range = rings.coordinates(row);
    const int edges = range.size() - 1;
    int counts[3] = {0, 0, 0};
    for (int i = lane(); i < edges; i += 32) {
      const Point before = rings.at[range.first + (i + edges - 1) % edges];
      const Point after = rings.at[range.first + (i + 1) % edges];
      const int turn = orientation(before, rings.at[range.first + i], after);
      ++counts[turn + 1];
    }
    for (int& count : counts) count = over_warp<Sum<int>>(count);
    if (lane() != 0) continue;
    right[row] = counts[0];
    straight[row] = counts[1];
    left[row] = counts[2];
  }
}

// A step of QuickHull for all rows at once. A point belongs to an edge of the hull so far; the one that is farthest to
// the right of its edge is on the hull. One block an edge; `farthest` is -1 where nothing lies outside of it.
extern "C" __global__ void hull_farthest(Coordinates at, const int* members, const int* member_offsets,
                                         const int* edge_from, const int* edge_to, int edges, int* farthest) {
  const int edge = static_cast<int>(blockIdx.x);
  if (edge >= edges) return;
  const Point a = at[edge_from[edge]];
  const Point b = at[edge_to[edge]];
  Placed best = GreatestPlaced::none();
  for (int i = member_offsets[edge] + static_cast<int>(threadIdx.x); i < member_offsets[edge + 1];
       i += static_cast<int>(blockDim.x)) {
    const Point p = at[members[i]];
    if (orientation(a, b, p) >= 0) continue;
    best = GreatestPlaced::join(best, {-height_over(a, b, p), members[i]});
  }
  best = over_block<GreatestPlaced>(best);
  if (threadIdx.x == 0) farthest[edge] = best.place == 0x7fffffff ? -1 : best.place;
}

// The edge a → b has become a → f → b: each of its points goes to the edge that it is still outside of (2e or 2e + 1),
// or is within the hull for good (-1).
extern "C" __global__ void hull_partition(Coordinates at, const int* members, const int* edge_of_member, int count,
                                          const int* edge_from, const int* edge_to, const int* farthest,
                                          int* new_edges) {
  for (int i = first_row(); i < count; i += row_step()) {
    const int edge = edge_of_member[i];
    const int top = farthest[edge];
    new_edges[i] = -1;
    if (top < 0 || members[i] == top) continue;
    const Point p = at[members[i]];
    if (orientation(at[edge_from[edge]], at[top], p) < 0) {
      new_edges[i] = 2 * edge;
    } else if (orientation(at[top], at[edge_to[edge]], p) < 0) {
      new_edges[i] = 2 * edge + 1;
    }
  }
}
