// Tests which points are in which polygons. "In" means the interior: a point on the boundary is not in it, like
// `contains`; boundary_counts selects `covers`. Empty points and polygons yield false. Null ones yield null if a kernel
// writes validity; otherwise they yield false too, and the caller has the bitmaps of both columns.
#include "block.cuh"
#include "rings.cuh"

namespace {

__device__ bool counts(Side side, bool boundary_counts) {
  return side == Side::Inside || (boundary_counts && side == Side::Boundary);
}

__device__ Box box_at(const double* boxes, int rows, int row) {
  return {boxes[row], boxes[rows + row], boxes[2 * rows + row], boxes[3 * rows + row]};
}

// Returns the state of a pair of rows, which decides the result before any computation.
__device__ State state_of_pair(State a, State b) {
  if (a == State::Null || b == State::Null) return State::Null;
  return a == State::Empty || b == State::Empty ? State::Empty : State::Present;
}

}  // namespace

// Tests point i against polygon i.
extern "C" __global__ void pip_rows(Points points, Polygons polygons, bool boundary_counts, unsigned* inside,
                                    unsigned* valid) {
  for (int row = first_row(); row < whole_warps(points.rows); row += row_step()) {
    State state = State::Null;
    bool in = false;
    if (row < points.rows) {
      state = state_of_pair(points.state(row), polygons.state(row));
      if (state == State::Present) in = counts(side_of(polygons, row, points.at[row]), boundary_counts);
    }
    write_bits(inside, row, in);
    write_bits(valid, row, state != State::Null);
  }
}

// Tests every point against every polygon, for few polygons: bit i of column p of `inside` is point i against polygon
// p. A block processes one polygon and stages its edges in shared memory, which all of its points share.
extern "C" __global__ void pip_dense(Points points, Polygons polygons, const double* boxes, int words,
                                     unsigned* inside) {
  __shared__ double xs[257];
  __shared__ double ys[257];
  const int polygon = static_cast<int>(blockIdx.y);
  const int row = first_row();
  const bool looked_at =
      row < points.rows && points.state(row) == State::Present && polygons.state(polygon) == State::Present;
  const Point p = looked_at ? points.at[row] : Point{not_a_number(), not_a_number()};
  const bool near = looked_at && contains(box_at(boxes, polygons.rows, polygon), p);
  bool in = false;
  bool on_boundary = false;
  const Range rings = polygons.rings_of(polygon);
  for (int ring = rings.first; ring < rings.last; ++ring) {
    const Range range = polygons.ring(ring);
    for (int first = range.first; first + 1 < range.last; first += 256) {
      const int size = smaller(257, range.last - first);
      for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) {
        xs[i] = polygons.at.x[first + i];
        ys[i] = polygons.at.y[first + i];
      }
      __syncthreads();
      if (near && !on_boundary) {
        const Side side = side_of_ring({xs, ys}, {0, size}, p);
        // The crossings of a piece of a ring have their own parity. So have those of holes, which exclude a point again
        // that the shell includes.
        on_boundary = side == Side::Boundary;
        if (side == Side::Inside) in = !in;
      }
      __syncthreads();
    }
  }
  const unsigned bits = __ballot_sync(0xffffffffu, in && !on_boundary);
  if (lane() == 0 && (row >> 5) < words) inside[static_cast<size_t>(polygon) * words + (row >> 5)] = bits;
}

template <class Shapes>
__device__ void test_pairs(const Points& points, const Shapes& polygons, const Pairs& pairs, bool boundary_counts,
                           unsigned char* inside) {
  for (int i = first_row(); i < pairs.count; i += row_step()) {
    const int left = pairs.left[i];
    const int right = pairs.right[i];
    bool in = false;
    if (state_of_pair(points.state(left), polygons.state(right)) == State::Present) {
      in = counts(side_of(polygons, right, points.at[left]), boundary_counts);
    }
    inside[i] = in ? 1 : 0;
  }
}

// Tests candidate pairs from an index, one thread per pair.
extern "C" __global__ void pip_sparse(Points points, Polygons polygons, Pairs pairs, bool boundary_counts,
                                      unsigned char* inside) {
  test_pairs(points, polygons, pairs, boundary_counts, inside);
}

// Tests candidate pairs with multipolygons.
extern "C" __global__ void pip_multi(Points points, MultiPolygons polygons, Pairs pairs, bool boundary_counts,
                                     unsigned char* inside) {
  test_pairs(points, polygons, pairs, boundary_counts, inside);
}

// Tests candidate pairs with polygons of many edges, one warp per pair: the lanes divide the edges of each ring, and a
// ballot sums the parity of their crossings.
extern "C" __global__ void pip_large(Points points, Polygons polygons, Pairs pairs, bool boundary_counts,
                                     unsigned char* inside) {
  for (int i = first_warp(); i < pairs.count; i += warp_step()) {
    const int left = pairs.left[i];
    const int right = pairs.right[i];
    const bool present = state_of_pair(points.state(left), polygons.state(right)) == State::Present;
    const Range rings = present ? polygons.rings_of(right) : Range{0, 0};
    const Point p = points.at[left];
    bool in = false;
    bool on_boundary = false;
    for (int ring = rings.first; ring < rings.last && !on_boundary; ++ring) {
      const Range range = polygons.ring(ring);
      bool odd = false;
      bool touched = false;
      for (int k = range.first + lane(); k + 1 < range.last; k += 32) {
        const Side side = side_of_ring(polygons.at, {k, k + 2}, p);
        touched = touched || side == Side::Boundary;
        if (side == Side::Inside) odd = !odd;
      }
      on_boundary = __any_sync(0xffffffffu, touched);
      if ((__popc(__ballot_sync(0xffffffffu, odd)) & 1) != 0) in = !in;
    }
    if (lane() == 0)
      inside[i] = counts(on_boundary ? Side::Boundary : in ? Side::Inside : Side::Outside, boundary_counts) ? 1 : 0;
  }
}

// Counts the points in each polygon, one block per polygon, for example for a choropleth. The count of a null polygon
// is -1.
extern "C" __global__ void pip_count(Points points, Polygons polygons, const double* boxes, bool boundary_counts,
                                     int* totals) {
  const int polygon = static_cast<int>(blockIdx.x);
  const State state = polygons.state(polygon);
  int count = 0;
  if (state == State::Present) {
    const Box box = box_at(boxes, polygons.rows, polygon);
    for (int row = static_cast<int>(threadIdx.x); row < points.rows; row += static_cast<int>(blockDim.x)) {
      if (points.state(row) != State::Present || !contains(box, points.at[row])) continue;
      if (counts(side_of(polygons, polygon, points.at[row]), boundary_counts)) ++count;
    }
  }
  const int total = over_block<Sum<int>>(count);
  if (threadIdx.x == 0) totals[polygon] = state == State::Null ? -1 : total;
}

// Computes the winding number of each ring around its point, which is more precise than in and out for a ring that
// crosses itself. 0 is outside; a point on the ring gets `on_ring` instead of a number.
extern "C" __global__ void pip_winding(Points points, Lines rings, Pairs pairs, int on_ring, int* windings) {
  for (int i = first_row(); i < pairs.count; i += row_step()) {
    const Point p = points.at[pairs.left[i]];
    const Range range = rings.coordinates(pairs.right[i]);
    int winding = 0;
    bool touched = false;
    for (int k = range.first; k + 1 < range.last && !touched; ++k) {
      const Segment edge = rings.at.segment(k);
      touched = on_segment(edge, p);
      if (touched) break;
      if (edge.a.y <= p.y && edge.b.y > p.y && orientation(edge.a, edge.b, p) > 0) ++winding;
      if (edge.b.y <= p.y && edge.a.y > p.y && orientation(edge.a, edge.b, p) < 0) --winding;
    }
    windings[i] = touched ? on_ring : winding;
  }
}
