// Distances. The distance to a null row is null; the distance to an empty row is NaN and valid.
#include "block.cuh"
#include "geodesic.cuh"
#include "rings.cuh"

namespace {

struct Measured {
  double distance;
  bool valid;
};

__device__ Measured unmeasured(State a, State b) { return {not_a_number(), a != State::Null && b != State::Null}; }

// Returns the squared distance to the nearest edge of a run of coordinates.
__device__ double squared_distance_to_run(const Coordinates& at, Range range, Point p) {
  if (range.size() == 1) return squared_distance(at[range.first], p);
  double least = infinity();
  for (int i = range.first; i + 1 < range.last; ++i) least = smaller(least, squared_distance(at.segment(i), p));
  return least;
}

__device__ double distance_to_row(const Lines& lines, int row, Point p) {
  return sqrt(squared_distance_to_run(lines.at, lines.coordinates(row), p));
}

__device__ double distance_to_row(const Polygons& polygons, int row, Point p) {
  if (side_of(polygons, row, p) != Side::Outside) return 0;
  double least = infinity();
  const Range rings = polygons.rings_of(row);
  for (int ring = rings.first; ring < rings.last; ++ring) {
    least = smaller(least, squared_distance_to_run(polygons.at, polygons.ring(ring), p));
  }
  return sqrt(least);
}

constexpr int kTile = 128;

struct Edges {
  double ax[kTile];
  double ay[kTile];
  double bx[kTile];
  double by[kTile];
  int size;
};

// Loads the segments of a polygon column into shared memory. Segments between two rings become NaN: comparisons with
// NaN are false, so they are never the nearest.
__device__ void load_edges(const Polygons& polygons, Range rings, int first, Range coordinates, Edges& edges) {
  const int size = smaller(kTile, coordinates.last - 1 - first);
  for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) {
    const int at = first + i;
    const int ring = rings.first + row_of(polygons.offsets + rings.first, rings.size(), at);
    const bool last_of_ring = at + 1 == polygons.offsets[ring + 1];
    const Segment s = polygons.at.segment(at);
    edges.ax[i] = last_of_ring ? not_a_number() : s.a.x;
    edges.ay[i] = s.a.y;
    edges.bx[i] = s.b.x;
    edges.by[i] = s.b.y;
  }
  if (threadIdx.x == 0) edges.size = larger(size, 0);
}

__device__ Segment edge_at(const Edges& edges, int i) {
  return {{edges.ax[i], edges.ay[i]}, {edges.bx[i], edges.by[i]}};
}

}  // namespace

// Computes the distance of left point i to right point i, on the plane or on the ground.
template <class Metric>
__global__ void distance_points(Points left, Points right, Metric metric, double* distances, unsigned* valid) {
  for (int row = first_row(); row < whole_warps(left.rows); row += row_step()) {
    bool known = false;
    if (row < left.rows) {
      Measured measured = unmeasured(left.state(row), right.state(row));
      // An empty point is NaN, and so is its distance.
      if (measured.valid) measured.distance = metric(left.at[row], right.at[row]);
      distances[row] = measured.distance;
      known = measured.valid;
    }
    write_bits(valid, row, known);
  }
}

// Computes the distances of points to lines or polygons, by pairs: 0 if the point is in the polygon, else the distance
// to the nearest edge of any ring.
template <class Column>
__global__ void distance_point_to(Points points, Column column, Pairs pairs, double* distances, unsigned* valid) {
  for (int i = first_row(); i < whole_warps(pairs.count); i += row_step()) {
    bool known = false;
    if (i < pairs.count) {
      const State of_point = points.state(pairs.left[i]);
      const State of_other = column.state(pairs.right[i]);
      Measured measured = unmeasured(of_point, of_other);
      if (of_point == State::Present && of_other == State::Present) {
        measured.distance = distance_to_row(column, pairs.right[i], points.at[pairs.left[i]]);
      }
      distances[i] = measured.distance;
      known = measured.valid;
    }
    write_bits(valid, i, known);
  }
}

// Computes the distances of polygons to polygons, by pairs, one block per pair. The edges of the right polygon are
// staged in shared memory in tiles, and each thread compares one edge of the left polygon with them. `most` ends the
// search early: a caller that only tests for a maximum distance gets any number that is not greater.
extern "C" __global__ void distance_polygon_tiles(Polygons left, Polygons right, Pairs pairs, double most,
                                                  double* distances) {
  __shared__ Edges edges;
  const int l = pairs.left[blockIdx.x];
  const int r = pairs.right[blockIdx.x];
  if (left.state(l) != State::Present || right.state(r) != State::Present) {
    if (threadIdx.x == 0) distances[blockIdx.x] = not_a_number();
    return;
  }
  const Range a = left.coordinates(l);
  const Range b = right.coordinates(r);
  const bool within =
      side_of(right, r, left.at[a.first]) != Side::Outside || side_of(left, l, right.at[b.first]) != Side::Outside;
  double least = within ? 0 : infinity();
  for (int first = b.first; first + 1 < b.last; first += kTile) {
    load_edges(right, right.rings_of(r), first, b, edges);
    __syncthreads();
    for (int ring = left.rings[l]; ring < left.rings[l + 1]; ++ring) {
      const Range range = left.ring(ring);
      for (int i = range.first + static_cast<int>(threadIdx.x); i + 1 < range.last; i += static_cast<int>(blockDim.x)) {
        const Segment s = left.at.segment(i);
        for (int k = 0; k < edges.size && least > 0; ++k) {
          if (!is_number(edges.ax[k])) continue;
          const Segment t = edge_at(edges, k);
          if (squared_distance(box_of(s), box_of(t)) < least) least = smaller(least, squared_distance(s, t));
        }
      }
    }
    if (__syncthreads_or(sqrt(least) <= most ? 1 : 0) != 0) break;
  }
  least = over_block<Least>(least);
  if (threadIdx.x == 0) distances[blockIdx.x] = sqrt(least);
}

// Computes the directed discrete Hausdorff distance, by pairs: the largest distance of a vertex of one line to the
// nearest vertex of the other. The distance of two lines is the maximum of both directions. One block per pair.
extern "C" __global__ void hausdorff_tiles(Lines left, Lines right, Pairs pairs, double* distances) {
  __shared__ double xs[kTile];
  __shared__ double ys[kTile];
  const int l = pairs.left[blockIdx.x];
  const int r = pairs.right[blockIdx.x];
  const bool present = left.state(l) == State::Present && right.state(r) == State::Present;
  const Range a = present ? left.coordinates(l) : Range{0, 0};
  const Range b = present ? right.coordinates(r) : Range{0, 0};
  double farthest = -infinity();
  for (int first = a.first; first < a.last; first += static_cast<int>(blockDim.x)) {
    const int i = first + static_cast<int>(threadIdx.x);
    const Point p = left.at[i < a.last ? i : a.first];
    double nearest = infinity();
    for (int tile = b.first; tile < b.last; tile += kTile) {
      const int size = smaller(kTile, b.last - tile);
      for (int k = static_cast<int>(threadIdx.x); k < size; k += static_cast<int>(blockDim.x)) {
        xs[k] = right.at.x[tile + k];
        ys[k] = right.at.y[tile + k];
      }
      __syncthreads();
      for (int k = 0; k < size; ++k) nearest = smaller(nearest, squared_distance(p, {xs[k], ys[k]}));
      __syncthreads();
    }
    farthest = larger(farthest, nearest);
  }
  farthest = over_block<Greatest>(farthest);
  if (threadIdx.x == 0) distances[blockIdx.x] = present ? sqrt(farthest) : not_a_number();
}

// Computes the discrete Fréchet distance, by pairs: the shortest leash that allows two walkers to follow their lines
// vertex by vertex without going back. One block per pair. The table is filled by diagonals, of which two are retained:
// the entries of a diagonal depend only on the two before, so the threads compute them in parallel. `room` has three
// diagonals for each block, each as long as the left line.
extern "C" __global__ void frechet_diagonals(Lines left, Lines right, Pairs pairs, int room_each, double* room,
                                             double* distances) {
  const int l = pairs.left[blockIdx.x];
  const int r = pairs.right[blockIdx.x];
  const bool present = left.state(l) == State::Present && right.state(r) == State::Present;
  const Range a = present ? left.coordinates(l) : Range{0, 0};
  const Range b = present ? right.coordinates(r) : Range{0, 0};
  if (!present || a.size() > room_each) {
    if (threadIdx.x == 0) distances[blockIdx.x] = not_a_number();
    return;
  }
  double* const first = room + static_cast<size_t>(blockIdx.x) * 3 * room_each;
  for (int diagonal = 0; diagonal < a.size() + b.size() - 1; ++diagonal) {
    double* const now = first + (diagonal % 3) * room_each;
    const double* const last = first + ((diagonal + 2) % 3) * room_each;
    const double* const last_but_one = first + ((diagonal + 1) % 3) * room_each;
    const int low = larger(0, diagonal - b.size() + 1);
    const int high = smaller(diagonal, a.size() - 1);
    for (int i = low + static_cast<int>(threadIdx.x); i <= high; i += static_cast<int>(blockDim.x)) {
      const int k = diagonal - i;
      double reached = i == 0 && k == 0 ? 0 : infinity();
      if (i > 0) reached = smaller(reached, last[i - 1]);
      if (k > 0) reached = smaller(reached, last[i]);
      if (i > 0 && k > 0) reached = smaller(reached, last_but_one[i - 1]);
      now[i] = larger(reached, distance(left.at[a.first + i], right.at[b.first + k]));
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) distances[blockIdx.x] = first[((a.size() + b.size() - 2) % 3) * room_each + a.size() - 1];
}

// Finds the `Count` nearest right points for each left point, nearest first; equal distances are ordered by row. The
// right points are staged in shared memory; each thread keeps its nearest points sorted in registers. Unused entries
// have row -1 and an infinite distance.
template <int Count>
__global__ void nearest_points(Points left, Points right, int* nearest, double* distances) {
  __shared__ double xs[kTile];
  __shared__ double ys[kTile];
  const int row = first_row();
  const bool here = row < left.rows && left.state(row) == State::Present;
  const Point p = here ? left.at[row] : Point{0, 0};
  double best[Count];
  int rows[Count];
#pragma unroll
  for (int k = 0; k < Count; ++k) {
    best[k] = infinity();
    rows[k] = -1;
  }
  for (int tile = 0; tile < right.rows; tile += kTile) {
    const int size = smaller(kTile, right.rows - tile);
    for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) {
      const bool present = right.state(tile + i) == State::Present;
      xs[i] = present ? right.at.x[tile + i] : not_a_number();
      ys[i] = present ? right.at.y[tile + i] : not_a_number();
    }
    __syncthreads();
    for (int i = 0; i < size && here; ++i) {
      double candidate = squared_distance(p, {xs[i], ys[i]});
      int candidate_row = tile + i;
#pragma unroll
      for (int k = 0; k < Count; ++k) {
        // False for NaN, so that null and empty points are never added.
        if (!(candidate < best[k])) continue;
        const double pushed = best[k];
        const int pushed_row = rows[k];
        best[k] = candidate;
        rows[k] = candidate_row;
        candidate = pushed;
        candidate_row = pushed_row;
      }
    }
    __syncthreads();
  }
  if (row >= left.rows) return;
#pragma unroll
  for (int k = 0; k < Count; ++k) {
    nearest[static_cast<size_t>(row) * Count + k] = rows[k];
    distances[static_cast<size_t>(row) * Count + k] = rows[k] < 0 ? infinity() : sqrt(best[k]);
  }
}
