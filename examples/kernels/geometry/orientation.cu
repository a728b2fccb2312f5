// Orientation predicates and operations that need nothing else: the orientation of rings, triangulation, and the steps
// of a convex hull.
#include "block.cuh"
#include "rings.cuh"

namespace {

// Returns whether d is within the circle through a, b, c, which turn left, as the sign of the determinant of the lifted
// differences. Uses doubles if the error bound allows, else double-double, which leaves an error of about 2^-100 of the
// terms.
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

// Returns how far a point is to the left of the line from a to b, in units of its length. The farthest point is
// selected by this value.
__device__ double height_over(Point a, Point b, Point p) { return cross(minus(b, a), minus(p, a)); }

// The remaining vertices of a ring as a circular list.
struct VertexList {
  Coordinates at;
  int* next;
  int* previous;
  int turn;  // orientation of the ring

  __device__ void link(int first, int count) const {
    for (int i = 0; i < count; ++i) {
      next[first + i] = first + (i + 1) % count;
      previous[first + i] = first + (i + count - 1) % count;
    }
  }
  __device__ void unlink(int vertex) const {
    next[previous[vertex]] = next[vertex];
    previous[next[vertex]] = previous[vertex];
  }

  // Returns whether p is inside the triangle or on its edge. Its corners, and vertices at the same location, are not.
  __device__ bool in_triangle(Point a, Point b, Point c, Point p) const {
    if (same(p, a) || same(p, b) || same(p, c)) return false;
    return turn * orientation(a, b, p) >= 0 && turn * orientation(b, c, p) >= 0 && turn * orientation(c, a, p) >= 0;
  }

  // Returns whether the triangle of a vertex and its neighbors is inside the ring and contains no other vertex. A
  // vertex on the line between its neighbors can always be removed.
  __device__ bool is_ear(int vertex) const {
    const Point a = at[previous[vertex]];
    const Point b = at[vertex];
    const Point c = at[next[vertex]];
    const int here = turn * orientation(a, b, c);
    if (here <= 0) return here == 0;
    const Box box = joined(joined(box_of({a, b}), c), c);
    for (int i = next[next[vertex]]; i != previous[vertex]; i = next[i]) {
      const Point p = at[i];
      if (!contains(box, p)) continue;
      // Only a vertex that does not turn with the ring can be the first to be inside the triangle.
      if (turn * orientation(at[previous[i]], p, at[next[i]]) <= 0 && in_triangle(a, b, c, p)) return false;
    }
    return true;
  }
};

}  // namespace

// Computes the orientation of each row's three points: 1 left, 0 collinear, -1 right.
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

// Computes 1 if d is within the circle through a, b and c, 0 if it is on it, and -1 if it is outside, regardless of the
// orientation of the three. Writes 0 and not valid if they are collinear, because no circle exists.
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

// Computes the orientation of each ring: 1 left, -1 right, 0 if it has no area. It is the turn at the lowest vertex
// (the rightmost of several): that vertex is on the hull, so its turn is that of the ring, and it is exact, unlike a
// sum of areas.
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
    // Repeated coordinates have no direction.
    for (int i = 0; i < edges && same(rings.at[range.first + before], middle); ++i)
      before = (before + edges - 1) % edges;
    for (int i = 0; i < edges && same(rings.at[range.first + after], middle); ++i) after = (after + 1) % edges;
    const int turn = orientation(rings.at[range.first + before], middle, rings.at[range.first + after]);
    turns[row] = static_cast<signed char>(turn);
  }
}

// Splits each ring into triangles: two fewer than it has vertices, three vertex numbers each, in the orientation of the
// ring. Collinear vertices yield triangles without area. One thread per ring; its vertices form a list in `next` and
// `previous` (one element per coordinate). `turns` is the result of orientation_of_rings. A ring that crosses itself
// can have no ear left: one vertex is then cut off regardless, and `forced` counts these. The triangles of a ring start
// at 3 times its offset in `triangles`. Holes must be joined to their shell beforehand.
extern "C" __global__ void triangulate_rings(Lines rings, const signed char* turns, int* next, int* previous,
                                             int* triangles, int* counts, int* forced) {
  for (int row = first_row(); row < rings.rows; row += row_step()) {
    const Range range = rings.state(row) == State::Present ? rings.coordinates(row) : Range{0, 0};
    counts[row] = 0;
    forced[row] = 0;
    if (range.size() < 4 || turns[row] == 0) continue;
    const VertexList list = {rings.at, next, previous, turns[row]};
    list.link(range.first, range.size() - 1);
    int* out = triangles + 3 * static_cast<size_t>(range.first);
    int remaining = range.size() - 1;
    int tried = 0;
    for (int vertex = range.first; remaining > 2; vertex = next[vertex]) {
      const bool ear = list.is_ear(vertex);
      if (!ear && ++tried <= remaining) continue;
      if (!ear) ++forced[row];
      *out++ = previous[vertex];
      *out++ = vertex;
      *out++ = next[vertex];
      ++counts[row];
      list.unlink(vertex);
      --remaining;
      tried = 0;
    }
  }
}

// Runs one step of QuickHull for all rows at once. Each point belongs to an edge of the current hull; the point
// farthest to the right of its edge is on the hull. One block per edge; `farthest` is -1 if no point is outside the
// edge.
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

// Assigns points after the edge a → b has become a → f → b: each point belongs to the edge that it is still outside of
// (2e or 2e + 1), or is inside the hull (-1).
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
