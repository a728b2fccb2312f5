// Operations along lines: the distance to each vertex, the point at a distance, the location of a point, additional
// vertices, and parallel lines. Null rows yield null, and empty rows yield empty: a point along an empty line is an
// empty point.
#include "block.cuh"
#include "segments.cuh"

namespace {

// Returns the last vertex of a row that is at most `along` from the start, but never the last vertex of the row, so
// that a segment begins at it. `until` is the distance to each vertex.
__device__ int segment_at(const double* until, Range range, double along) {
  int low = range.first;
  int high = range.last - 1;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (until[middle] <= along) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Returns the number of pieces into which a segment is split so that none is longer than `most`. The number is limited,
// because a tolerance of zero would exceed the memory.
__device__ int pieces_of(Segment s, double most) {
  const double pieces = ceil(distance(s.a, s.b) / most);
  return static_cast<int>(clamped(is_number(pieces) ? pieces : 1, 1.0, 1048576.0));
}

__device__ Point left_of(Point direction) { return {-direction.y, direction.x}; }

__device__ Point unit(Point d) {
  const double length = hypot(d.x, d.y);
  return length > 0 ? Point{d.x / length, d.y / length} : Point{0, 0};
}

// Returns the direction of the segment that leads to a vertex, or away from it, skipping segments of length zero.
// Returns a zero vector if there is no segment on that side.
__device__ Point direction_before(const Coordinates& at, Range range, int i) {
  for (int k = i - 1; k >= range.first; --k) {
    if (!same(at[k], at[i])) return unit(minus(at[i], at[k]));
  }
  return {0, 0};
}
__device__ Point direction_behind(const Coordinates& at, Range range, int i) {
  for (int k = i + 1; k < range.last; ++k) {
    if (!same(at[k], at[i])) return unit(minus(at[k], at[i]));
  }
  return {0, 0};
}

// Returns the corner of the two lines parallel to a vertex's segments. At a sharp turn it would be far away, so it is
// cut off at `limit` times the distance.
__device__ Point beside(Point p, Point before, Point behind, double aside, double limit) {
  const bool first = before.x == 0 && before.y == 0;
  const bool last = behind.x == 0 && behind.y == 0;
  const Point normal_before = left_of(first ? behind : before);
  const Point normal_behind = left_of(last ? before : behind);
  const Point sum = {normal_before.x + normal_behind.x, normal_before.y + normal_behind.y};
  const double square = dot(sum, sum);
  // The line turns straight back and has no corner; the end of the first parallel is as good as any point.
  if (square < 1e-24) return {fma(aside, normal_before.x, p.x), fma(aside, normal_before.y, p.y)};
  // The corner is 2 sum / |sum|^2 away, in units of the distance; 1 for a straight line.
  double reach = 2 / square;
  const double length = reach * sqrt(square);
  if (length > limit) reach *= limit / length;
  return {fma(aside * reach, sum.x, p.x), fma(aside * reach, sum.y, p.y)};
}

}  // namespace

// Computes the distance of each vertex along its line. One warp per row sums 32 segments at a time and carries the sum.
extern "C" __global__ void distances_along(Lines lines, double* until) {
  for (int row = first_warp(); row < lines.rows; row += warp_step()) {
    if (lines.state(row) != State::Present) continue;
    const Range range = lines.coordinates(row);
    double carried = 0;
    for (int first = range.first; first < range.last; first += 32) {
      const int i = first + lane();
      double sum = i > range.first && i < range.last ? distance(lines.at[i - 1], lines.at[i]) : 0;
      for (int step = 1; step < 32; step *= 2) {
        const double other = __shfl_up_sync(0xffffffffu, sum, static_cast<unsigned>(step));
        if (lane() >= step) sum += other;
      }
      sum += carried;
      if (i < range.last) until[i] = sum;
      carried = __shfl_sync(0xffffffffu, sum, 31);
    }
  }
}

// Computes the point at a distance along each line, or at a fraction of its length. Negative values count from the end;
// values beyond an end yield that end.
extern "C" __global__ void points_along(Lines lines, const double* until, const double* distances, bool as_shares,
                                        double* xs, double* ys, unsigned* valid) {
  for (int row = first_row(); row < whole_warps(lines.rows); row += row_step()) {
    const State state = row < lines.rows ? lines.state(row) : State::Null;
    const bool known = state != State::Null && is_number(distances[row]);
    if (row < lines.rows) {
      Point p = {not_a_number(), not_a_number()};
      if (known && state == State::Present) {
        const Range range = lines.coordinates(row);
        const double length = until[range.last - 1];
        double along = as_shares ? distances[row] * length : distances[row];
        along = clamped(along < 0 ? along + length : along, 0.0, length);
        const int i = segment_at(until, range, along);
        p = lines.at[i];
        if (i + 1 < range.last && until[i + 1] > until[i]) {
          p = between(p, lines.at[i + 1], (along - until[i]) / (until[i + 1] - until[i]));
        }
      }
      xs[row] = p.x;
      ys[row] = p.y;
    }
    write_bits(valid, row, known);
  }
}

// Computes the distance along a line of the location nearest to a point, by pairs; the first one of several. One warp
// per pair.
extern "C" __global__ void locate_along(Points points, Lines lines, const double* until, Pairs pairs,
                                        double* distances) {
  for (int i = first_warp(); i < pairs.count; i += warp_step()) {
    const int row = pairs.right[i];
    const bool present = points.state(pairs.left[i]) == State::Present && lines.state(row) == State::Present;
    const Range range = present ? lines.coordinates(row) : Range{0, 0};
    const Point p = points.at[pairs.left[i]];
    Placed best = LeastPlaced::none();
    for (int k = range.first + lane(); k + 1 < range.last; k += 32) {
      best = LeastPlaced::join(best, {squared_distance(nearest_on(lines.at.segment(k), p), p), k});
    }
    best = over_warp<LeastPlaced>(best);
    if (lane() != 0) continue;
    double along = present ? 0 : not_a_number();
    if (present && best.place != 0x7fffffff) {
      const double share = share_of_nearest(lines.at.segment(best.place), p);
      along = fma(share, until[best.place + 1] - until[best.place], until[best.place]);
    }
    distances[i] = along;
  }
}

// Counts the coordinates of each line when no segment is longer than `most`.
extern "C" __global__ void densify_counts(Lines lines, double most, int* counts) {
  for (int row = first_warp(); row < lines.rows; row += warp_step()) {
    const bool present = lines.state(row) == State::Present;
    const Range range = present ? lines.coordinates(row) : Range{0, 0};
    int count = 0;
    for (int i = range.first + lane(); i + 1 < range.last; i += 32) count += pieces_of(lines.at.segment(i), most);
    count = over_warp<Sum<int>>(count);
    if (lane() == 0) counts[row] = present ? count + 1 : 0;
  }
}

// Writes the coordinates. The pieces of a segment have equal length. One warp per row; a prefix sum over the lanes
// gives the positions of 32 segments.
extern "C" __global__ void densify(Lines lines, double most, const int* offsets, double* xs, double* ys) {
  for (int row = first_warp(); row < lines.rows; row += warp_step()) {
    if (lines.state(row) != State::Present) continue;
    const Range range = lines.coordinates(row);
    int next = offsets[row];
    for (int first = range.first; first + 1 < range.last; first += 32) {
      const int i = first + lane();
      const bool here = i + 1 < range.last;
      const Segment s = here ? lines.at.segment(i) : Segment{{0, 0}, {0, 0}};
      const int pieces = here ? pieces_of(s, most) : 0;
      const int before = sum_before_in_warp(pieces);
      for (int k = 0; k < pieces; ++k) {
        const Point p = between(s.a, s.b, static_cast<double>(k) / pieces);
        xs[next + before + k] = p.x;
        ys[next + before + k] = p.y;
      }
      next += __shfl_sync(0xffffffffu, before + pieces, 31);
    }
    if (lane() != 0) continue;
    xs[next] = lines.at.x[range.last - 1];
    ys[next] = lines.at.y[range.last - 1];
  }
}

// Computes a parallel of each line, on its left if `aside` is positive: one vertex for each vertex, mitered up to
// `limit`. The parallel can cross itself where the line turns more sharply than the distance; the caller must remove
// such loops.
extern "C" __global__ void lines_beside(Lines lines, int coordinates, double aside, double limit, double* xs,
                                        double* ys) {
  for (int i = first_row(); i < coordinates; i += row_step()) {
    const int row = row_of(lines.offsets, lines.rows, i);
    const Range range = lines.coordinates(row);
    const Point before = direction_before(lines.at, range, i);
    const Point behind = direction_behind(lines.at, range, i);
    const bool nowhere = before.x == 0 && before.y == 0 && behind.x == 0 && behind.y == 0;
    const Point p = nowhere ? lines.at[i] : beside(lines.at[i], before, behind, aside, limit);
    xs[i] = p.x;
    ys[i] = p.y;
  }
}
