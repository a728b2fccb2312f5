// Areas, lengths and centroids. The result for a null row is null. The area and the length of an empty row are 0, and
// its centroid is an empty point: NaN and valid.
#include "block.cuh"
#include "rings.cuh"

namespace {

// The sums of a ring's triangles and of their centroids, relative to an origin that all rings of the polygon share.
struct Moments {
  double area2;  // twice the area
  double x;      // times 6
  double y;
};

__device__ Moments operator+(Moments a, Moments b) { return {a.area2 + b.area2, a.x + b.x, a.y + b.y}; }

__device__ Moments moments_of(const Coordinates& at, Range ring, Point origin, bool hole) {
  Moments sum = {0, 0, 0};
  for (int i = ring.first; i + 1 < ring.last; ++i) {
    const Point a = minus(at[i], origin);
    const Point b = minus(at[i + 1], origin);
    const double area2 = cross(a, b);
    sum = sum + Moments{area2, area2 * (a.x + b.x), area2 * (a.y + b.y)};
  }
  // Shells are added and holes subtracted, regardless of their orientation.
  const double sign = (sum.area2 < 0) != hole ? -1.0 : 1.0;
  return {sign * sum.area2, sign * sum.x, sign * sum.y};
}

// A centroid of segments weighted by length, used if there is no area.
struct Weighed {
  double length;
  double x;
  double y;
};

__device__ Weighed operator+(Weighed a, Weighed b) { return {a.length + b.length, a.x + b.x, a.y + b.y}; }

__device__ Weighed weighed_segments(const Coordinates& at, Range range, Point origin) {
  Weighed sum = {0, 0, 0};
  for (int i = range.first; i + 1 < range.last; ++i) {
    const Point a = minus(at[i], origin);
    const Point b = minus(at[i + 1], origin);
    const double length = distance(a, b);
    sum = sum + Weighed{length, length * (a.x + b.x) / 2, length * (a.y + b.y) / 2};
  }
  return sum;
}

// Returns this lane's part of a run's length.
__device__ double share_of_run(const Coordinates& at, Range range) {
  double sum = 0;
  for (int i = range.first + lane(); i + 1 < range.last; i += 32) sum += distance(at[i], at[i + 1]);
  return sum;
}
__device__ double share_of_length(const Lines& lines, int row) {
  return share_of_run(lines.at, lines.coordinates(row));
}
__device__ double share_of_length(const Polygons& polygons, int row) {
  const Range rings = polygons.rings_of(row);
  double sum = 0;
  for (int ring = rings.first; ring < rings.last; ++ring) sum += share_of_run(polygons.at, polygons.ring(ring));
  return sum;
}

template <class Column>
__device__ double area_of_rings(const Column& column, Range rings) {
  double area = 0;
  for (int ring = rings.first; ring < rings.last; ++ring) {
    const double of_ring = fabs(twice_signed_area(column.at, column.ring(ring))) / 2;
    area += ring == rings.first ? of_ring : -of_ring;
  }
  return area;
}

// Returns a height between the vertices of a polygon near the middle of its box: a line at that height crosses no
// vertex.
__device__ double height_between(const Coordinates& at, Range range, double middle) {
  double below = -infinity();
  double above = infinity();
  for (int i = range.first; i < range.last; ++i) {
    const double y = at.y[i];
    if (y <= middle) below = larger(below, y);
    if (y > middle) above = smaller(above, y);
  }
  if (!is_finite(below) || !is_finite(above)) return middle;
  return below + (above - below) / 2;
}

// Returns where a line at a height crosses the first edge to the right of `x`, over all rings.
__device__ double next_crossing(const Polygons& polygons, Range rings, double height, double x) {
  double next = infinity();
  for (int ring = rings.first; ring < rings.last; ++ring) {
    const Range range = polygons.ring(ring);
    for (int i = range.first; i + 1 < range.last; ++i) {
      const Segment s = polygons.at.segment(i);
      if ((s.a.y <= height) == (s.b.y <= height)) continue;
      const double at = fma((height - s.a.y) / (s.b.y - s.a.y), s.b.x - s.a.x, s.a.x);
      if (at > x) next = smaller(next, at);
    }
  }
  return next;
}

// Returns the middle of the widest section of that line within the polygon, or the first coordinate if the polygon has
// no interior.
__device__ Point point_within(const Polygons& polygons, int row) {
  const Range range = polygons.coordinates(row);
  const Range rings = polygons.rings_of(row);
  double low = infinity();
  double high = -infinity();
  for (int i = range.first; i < range.last; ++i) {
    low = smaller(low, polygons.at.y[i]);
    high = larger(high, polygons.at.y[i]);
  }
  const double height = height_between(polygons.at, range, low + (high - low) / 2);
  Point best = polygons.at[range.first];
  double width = 0;
  double enter = next_crossing(polygons, rings, height, -infinity());
  // Every second crossing leaves the polygon.
  for (int crossings = 0; is_finite(enter) && crossings < range.size(); ++crossings) {
    const double leave = next_crossing(polygons, rings, height, enter);
    if (!is_finite(leave)) break;
    if (leave - enter > width) {
      width = leave - enter;
      best = {enter + width / 2, height};
    }
    enter = next_crossing(polygons, rings, height, leave);
  }
  return best;
}

__device__ Point centroid_of(Moments area, Weighed length, Point any) {
  if (area.area2 != 0) return {any.x + area.x / (3 * area.area2), any.y + area.y / (3 * area.area2)};
  if (length.length != 0) return {any.x + length.x / length.length, any.y + length.y / length.length};
  return any;  // all coordinates are the same
}

}  // namespace

extern "C" __global__ void area_of_polygons(Polygons polygons, double* areas, unsigned* valid) {
  for (int row = first_row(); row < whole_warps(polygons.rows); row += row_step()) {
    const State state = row < polygons.rows ? polygons.state(row) : State::Null;
    if (row < polygons.rows) {
      areas[row] = state == State::Null ? not_a_number() : area_of_rings(polygons, polygons.rings_of(row));
    }
    write_bits(valid, row, state != State::Null);
  }
}

extern "C" __global__ void area_of_multipolygons(MultiPolygons polygons, double* areas, unsigned* valid) {
  for (int row = first_row(); row < whole_warps(polygons.rows); row += row_step()) {
    const State state = row < polygons.rows ? polygons.state(row) : State::Null;
    if (row < polygons.rows) {
      double area = state == State::Null ? not_a_number() : 0;
      const Range parts = state == State::Present ? polygons.parts_of(row) : Range{0, 0};
      for (int part = parts.first; part < parts.last; ++part) {
        area += area_of_rings(polygons, polygons.rings_of_part(part));
      }
      areas[row] = area;
    }
    write_bits(valid, row, state != State::Null);
  }
}

// Computes the length of a line, or of all rings of a polygon, including holes. One warp per row, because rows are
// long: the lanes divide the segments.
template <class Column>
__global__ void length_of(Column column, double* lengths, unsigned char* states) {
  for (int row = first_warp(); row < column.rows; row += warp_step()) {
    const State state = column.state(row);
    double sum = 0;
    if (state == State::Present) sum = over_warp<Sum<double>>(share_of_length(column, row));
    if (lane() != 0) continue;
    lengths[row] = state == State::Null ? not_a_number() : sum;
    states[row] = static_cast<unsigned char>(state);
  }
}

// Computes centroids by area. A polygon without area uses the length of its rings; one without length uses its
// location.
extern "C" __global__ void centroid_of_polygons(Polygons polygons, double* xs, double* ys, unsigned* valid) {
  for (int row = first_row(); row < whole_warps(polygons.rows); row += row_step()) {
    const State state = row < polygons.rows ? polygons.state(row) : State::Null;
    if (row < polygons.rows) {
      Point centroid = {not_a_number(), not_a_number()};
      if (state == State::Present) {
        const Point origin = polygons.at[polygons.coordinates(row).first];
        const Range rings = polygons.rings_of(row);
        Moments area = {0, 0, 0};
        Weighed length = {0, 0, 0};
        for (int ring = rings.first; ring < rings.last; ++ring) {
          area = area + moments_of(polygons.at, polygons.ring(ring), origin, ring != rings.first);
          length = length + weighed_segments(polygons.at, polygons.ring(ring), origin);
        }
        centroid = centroid_of(area, length, origin);
      }
      xs[row] = centroid.x;
      ys[row] = centroid.y;
    }
    write_bits(valid, row, state != State::Null);
  }
}

// Computes centroids by length. A line without length uses its location.
extern "C" __global__ void centroid_of_lines(Lines lines, double* xs, double* ys, unsigned* valid) {
  for (int row = first_row(); row < whole_warps(lines.rows); row += row_step()) {
    const State state = row < lines.rows ? lines.state(row) : State::Null;
    if (row < lines.rows) {
      Point centroid = {not_a_number(), not_a_number()};
      if (state == State::Present) {
        const Range range = lines.coordinates(row);
        const Point origin = lines.at[range.first];
        centroid = centroid_of({0, 0, 0}, weighed_segments(lines.at, range, origin), origin);
      }
      xs[row] = centroid.x;
      ys[row] = centroid.y;
    }
    write_bits(valid, row, state != State::Null);
  }
}

// Computes a point that is guaranteed to be in the polygon, unlike a centroid, for labels and as the representative in
// a tree.
extern "C" __global__ void points_within(Polygons polygons, double* xs, double* ys, unsigned* valid) {
  for (int row = first_row(); row < whole_warps(polygons.rows); row += row_step()) {
    const State state = row < polygons.rows ? polygons.state(row) : State::Null;
    if (row < polygons.rows) {
      Point p = {not_a_number(), not_a_number()};
      if (state == State::Present) p = point_within(polygons, row);
      xs[row] = p.x;
      ys[row] = p.y;
    }
    write_bits(valid, row, state != State::Null);
  }
}
