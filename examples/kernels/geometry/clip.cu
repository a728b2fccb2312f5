// Clips a column to a rectangle. Each row is first classified by its box, so that most rows need no clipping. Lines and
// polygons are then clipped twice, once to count and once to write. Null rows stay null; a row that is clipped away
// completely becomes empty, and an empty row stays empty.
#include "block.cuh"
#include "segments.cuh"

namespace {

enum class Place : unsigned char { Null = 0, Nothing = 1, Within = 2, Across = 3 };

__device__ Place place_of(Box box, Box window) {
  if (!is_number(box.min_x)) return Place::Null;
  if (!overlap(box, window)) return Place::Nothing;
  const bool within =
      window.min_x <= box.min_x && box.max_x <= window.max_x && window.min_y <= box.min_y && box.max_y <= window.max_y;
  return within ? Place::Within : Place::Across;
}

// The part of a segment inside a window, as two fractions of its length (Liang and Barsky).
struct Shares {
  double from;
  double to;
};

__device__ bool cut(double step, double room, Shares& shares) {
  if (step == 0) return room >= 0;  // parallel to the edge: all of it or nothing
  const double share = room / step;
  if (step < 0) {
    shares.from = larger(shares.from, share);
  } else {
    shares.to = smaller(shares.to, share);
  }
  return shares.from <= shares.to;
}

__device__ bool clipped(Segment s, Box window, Shares& shares) {
  const Point d = minus(s.b, s.a);
  shares = {0, 1};
  return cut(-d.x, s.a.x - window.min_x, shares) && cut(d.x, window.max_x - s.a.x, shares) &&
         cut(-d.y, s.a.y - window.min_y, shares) && cut(d.y, window.max_y - s.a.y, shares);
}

// Clamps the result, because rounding must not move it out of the window, where a second pass would clip it again.
__device__ Point at_share(Segment s, double share, Box window) {
  const Point p = share <= 0 ? s.a : between(s.a, s.b, share);
  return {clamped(p.x, window.min_x, window.max_x), clamped(p.y, window.min_y, window.max_y)};
}

// Collects the pieces of a line. A piece that begins where the last one ended continues that line; any other piece
// begins a new line. A single touching point is not a line.
template <class Out>
struct Pieces {
  Out& out;
  bool open = false;
  Point last = {0, 0};

  __device__ void take(Point from, Point to) {
    if (same(from, to)) return;
    if (!open || !same(last, from)) {
      finish();
      out.begin();
      out.put(from);
      open = true;
    }
    out.put(to);
    last = to;
  }
  __device__ void finish() {
    if (open) out.end();
    open = false;
  }
};

struct CountOut {
  int lines = 0;
  int coordinates = 0;
  __device__ void begin() { ++lines; }
  __device__ void put(Point) { ++coordinates; }
  __device__ void end() {}
};

struct WriteOut {
  int line;
  int coordinate;
  int* offsets;
  double* xs;
  double* ys;
  __device__ void begin() { offsets[line++] = coordinate; }
  __device__ void put(Point p) {
    xs[coordinate] = p.x;
    ys[coordinate] = p.y;
    ++coordinate;
  }
  __device__ void end() {}
};

template <class Out>
__device__ void clip_line(const Lines& lines, int row, Box window, Out& out) {
  const Range range = lines.coordinates(row);
  Pieces<Out> pieces = {out};
  for (int i = range.first; i + 1 < range.last; ++i) {
    const Segment s = lines.at.segment(i);
    Shares shares;
    if (!clipped(s, window, shares)) continue;
    const Point from = at_share(s, shares.from, window);
    const Point to = shares.to >= 1 ? at_share(s, 1, window) : at_share(s, shares.to, window);
    pieces.take(from, to);
  }
  pieces.finish();
}

// One edge of the window in the Sutherland-Hodgman algorithm: a stage that receives the vertices of a ring one by one
// and passes on those of the clipped ring. A chain of four stages needs no intermediate storage.
struct Stage {
  int edge;  // 0 left, 1 right, 2 bottom, 3 top
  double at;
  bool any = false;
  Point first = {0, 0};
  Point last = {0, 0};

  __device__ bool within(Point p) const {
    switch (edge) {
      case 0: return p.x >= at;
      case 1: return p.x <= at;
      case 2: return p.y >= at;
      default: return p.y <= at;
    }
  }
  // Returns the point where a segment crosses the edge's line; the caller guarantees the crossing. The result is
  // exactly on the line.
  __device__ Point through(Point a, Point b) const {
    if (edge < 2) return {at, fma((at - a.x) / (b.x - a.x), b.y - a.y, a.y)};
    return {fma((at - a.y) / (b.y - a.y), b.x - a.x, a.x), at};
  }
};

template <class Out>
struct RingClipper {
  Stage stages[4];
  Out& out;
  bool any = false;
  Point first = {0, 0};
  Point last = {0, 0};

  __device__ RingClipper(Box window, Out& to)
      : stages{{0, window.min_x}, {1, window.max_x}, {2, window.min_y}, {3, window.max_y}}, out(to) {}

  // Processes a vertex in a stage. If it and the previous vertex are on different sides, the stage passes on their
  // intersection with the edge. It passes on the vertex itself if that is inside.
  template <int Number>
  __device__ __noinline__ void take(Point p) {
    if constexpr (Number == 4) {
      emit(p);
    } else {
      Stage& stage = stages[Number];
      if (stage.any) {
        step<Number>(stage.last, p);
      } else {
        stage.first = p;
        stage.any = true;
        if (stage.within(p)) take<Number + 1>(p);
      }
      stage.last = p;
    }
  }
  // Closes the ring: processes the edge from the last vertex to the first in every stage.
  template <int Number>
  __device__ void close() {
    if constexpr (Number == 4) {
      if (any) {
        if (!same(first, last)) out.put(first);
        out.end();
      }
    } else {
      Stage& stage = stages[Number];
      if (stage.any && stage.within(stage.last) != stage.within(stage.first)) {
        take<Number + 1>(stage.through(stage.last, stage.first));
      }
      close<Number + 1>();
    }
  }

 private:
  template <int Number>
  __device__ void step(Point from, Point to) {
    const Stage& stage = stages[Number];
    if (stage.within(from) != stage.within(to)) take<Number + 1>(stage.through(from, to));
    if (stage.within(to)) take<Number + 1>(to);
  }
  // Not inlined: the stages above call it from many places, and each would get a copy.
  __device__ __noinline__ void emit(Point p) {
    if (any && same(last, p)) return;
    if (!any) {
      out.begin();
      first = p;
      any = true;
    }
    out.put(p);
    last = p;
  }
};

// Clips a ring. The last coordinate of a ring repeats its first and is skipped; the clipper closes the ring.
template <class Out>
__device__ void clip_ring(const Coordinates& at, Range ring, Box window, Out& out) {
  RingClipper<Out> clipper(window, out);
  for (int i = ring.first; i + 1 < ring.last; ++i) clipper.template take<0>(at[i]);
  clipper.template close<0>();
}

// A ring with fewer coordinates only touches the window.
constexpr int kLeastRing = 4;

}  // namespace

// Classifies rows: null, outside the window, inside it, or to be clipped.
extern "C" __global__ void clip_places(const double* boxes, int rows, Box window, unsigned char* places, int* totals) {
  for (int row = first_row(); row < whole_warps(rows); row += row_step()) {
    Place place = Place::Null;
    if (row < rows) {
      place = place_of({boxes[row], boxes[rows + row], boxes[2 * rows + row], boxes[3 * rows + row]}, window);
      places[row] = static_cast<unsigned char>(place);
    }
    for (int kind = 0; kind < 4; ++kind) {
      const unsigned alike = __ballot_sync(0xffffffffu, row < rows && static_cast<int>(place) == kind);
      if (lane() == 0 && alike != 0) atomicAdd(totals + kind, __popc(alike));
    }
  }
}

// Tests which points are in the window, edge included, as a bitmap. Null rows are not in it and not valid.
extern "C" __global__ void clip_points(Points points, Box window, unsigned* within, unsigned* valid) {
  for (int row = first_row(); row < whole_warps(points.rows); row += row_step()) {
    const State state = row < points.rows ? points.state(row) : State::Null;
    write_bits(within, row, state == State::Present && contains(window, points.at[row]));
    write_bits(valid, row, state != State::Null);
  }
}

// Counts the lines that each row is split into, and their coordinates.
extern "C" __global__ void clip_count_lines(Lines lines, Box window, const unsigned char* places, int* line_counts,
                                            int* coordinate_counts) {
  for (int row = first_row(); row < lines.rows; row += row_step()) {
    CountOut out;
    const Place place = static_cast<Place>(places[row]);
    if (place == Place::Within && lines.state(row) == State::Present) {
      out = {1, lines.coordinates(row).size()};
    } else if (place == Place::Across) {
      clip_line(lines, row, window, out);
    }
    line_counts[row] = out.lines;
    coordinate_counts[row] = out.coordinates;
  }
}

extern "C" __global__ void clip_fill_lines(Lines lines, Box window, const unsigned char* places, const int* first_lines,
                                           const int* first_coordinates, int* offsets, double* xs, double* ys) {
  for (int row = first_row(); row < lines.rows; row += row_step()) {
    WriteOut out = {first_lines[row], first_coordinates[row], offsets, xs, ys};
    const Place place = static_cast<Place>(places[row]);
    if (place == Place::Within && lines.state(row) == State::Present) {
      const Range range = lines.coordinates(row);
      out.begin();
      for (int i = range.first; i < range.last; ++i) out.put(lines.at[i]);
    } else if (place == Place::Across) {
      clip_line(lines, row, window, out);
    }
  }
  if (first_row() == 0) offsets[first_lines[lines.rows]] = first_coordinates[lines.rows];
}

// Counts the coordinates that are left of each ring; 0 if the ring is clipped away. With this algorithm, several
// remaining pieces form one ring that runs along the window's edge between them.
extern "C" __global__ void clip_count_rings(Lines rings, Box window, int* counts) {
  for (int row = first_row(); row < rings.rows; row += row_step()) {
    CountOut out;
    if (rings.state(row) == State::Present) clip_ring(rings.at, rings.coordinates(row), window, out);
    counts[row] = out.coordinates < kLeastRing ? 0 : out.coordinates;
  }
}

extern "C" __global__ void clip_fill_rings(Lines rings, Box window, const int* first_coordinates, double* xs,
                                           double* ys) {
  for (int row = first_row(); row < rings.rows; row += row_step()) {
    if (first_coordinates[row] == first_coordinates[row + 1]) continue;
    int ignored = 0;
    WriteOut out = {0, first_coordinates[row], &ignored, xs, ys};
    clip_ring(rings.at, rings.coordinates(row), window, out);
  }
}
