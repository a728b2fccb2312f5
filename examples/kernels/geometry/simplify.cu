// Line simplification. Each method marks the coordinates to keep, which are then counted and gathered. The first and
// the last coordinate of a line are always kept. Null and empty rows are unchanged: they have no coordinates to mark.
#include "block.cuh"
#include "segments.cuh"

namespace {

// Returns the area of the triangle of a vertex and its neighbors: the area that the line loses without it.
__device__ double triangle(Point a, Point b, Point c) { return fabs(cross(minus(b, a), minus(c, a))) / 2; }

// Return the nearest kept coordinate before or after. The ends are always kept.
__device__ int kept_before(const unsigned char* keep, int i) {
  do {
    --i;
  } while (keep[i] == 0);
  return i;
}
__device__ int kept_behind(const unsigned char* keep, int i) {
  do {
    ++i;
  } while (keep[i] == 0);
  return i;
}

// Returns the vertex farthest from the chord of a piece of a line. The whole warp must call it.
__device__ Placed farthest_from_chord(const Coordinates& at, int first, int last) {
  const Segment chord = {at[first], at[last]};
  Placed best = GreatestPlaced::none();
  for (int i = first + 1 + lane(); i < last; i += 32)
    best = GreatestPlaced::join(best, {squared_distance(chord, at[i]), i});
  return over_warp<GreatestPlaced>(best);
}

constexpr int kDepth = 64;

}  // namespace

// Simplifies with Douglas and Peucker's method: a piece keeps the vertex farthest from its chord if that is farther
// than the tolerance, and its two halves are processed in the same way. One warp per row. The larger half is put on the
// stack, so its depth is at most logarithmic in the line. All lanes hold the same stack.
extern "C" __global__ void simplify_by_distance(Lines lines, double tolerance, unsigned char* keep) {
  for (int row = first_warp(); row < lines.rows; row += warp_step()) {
    if (lines.state(row) != State::Present) continue;
    const Range range = lines.coordinates(row);
    for (int i = range.first + lane(); i < range.last; i += 32) {
      keep[i] = i == range.first || i == range.last - 1 ? 1 : 0;
    }
    __syncwarp();
    int firsts[kDepth];
    int lasts[kDepth];
    int depth = 0;
    firsts[depth] = range.first;
    lasts[depth++] = range.last - 1;
    while (depth > 0) {
      const int first = firsts[--depth];
      const int last = lasts[depth];
      if (last - first < 2) continue;
      const Placed farthest = farthest_from_chord(lines.at, first, last);
      if (!(farthest.value > tolerance * tolerance)) continue;
      const int middle = farthest.place;
      if (lane() == 0) keep[middle] = 1;
      const bool first_is_larger = middle - first > last - middle;
      firsts[depth] = first_is_larger ? first : middle;
      lasts[depth++] = first_is_larger ? middle : last;
      firsts[depth] = first_is_larger ? middle : first;
      lasts[depth++] = first_is_larger ? last : middle;
    }
    __syncwarp();
  }
}

// Computes the areas of Visvalingam and Whyatt's method for every kept vertex; infinite for the ends, which are always
// kept.
extern "C" __global__ void simplify_areas(Lines lines, int coordinates, const unsigned char* keep, double* areas) {
  for (int i = first_row(); i < coordinates; i += row_step()) {
    areas[i] = infinity();
    if (keep[i] == 0) continue;
    const Range range = lines.coordinates(row_of(lines.offsets, lines.rows, i));
    if (i == range.first || i == range.last - 1) continue;
    areas[i] = triangle(lines.at[kept_before(keep, i)], lines.at[i], lines.at[kept_behind(keep, i)]);
  }
}

// Removes all vertices whose area is below `least` and less than those of both kept neighbors (of equal areas the
// earlier vertex is removed), so that no two neighbors are removed at once. The caller repeats this until no vertex is
// removed.
extern "C" __global__ void simplify_by_area(int coordinates, double least, const double* areas,
                                            const unsigned char* keep, unsigned char* next, int* gone) {
  int mine = 0;
  for (int i = first_row(); i < coordinates; i += row_step()) {
    next[i] = keep[i];
    if (keep[i] == 0 || !(areas[i] < least)) continue;
    // An end has an infinite area, so this vertex has neighbors on both sides.
    const double before = areas[kept_before(keep, i)];
    const double behind = areas[kept_behind(keep, i)];
    if (areas[i] < before && areas[i] <= behind) {
      next[i] = 0;
      ++mine;
    }
  }
  mine = over_warp<Sum<int>>(mine);
  if (lane() == 0 && mine != 0) atomicAdd(gone, mine);
}

// Keeps a vertex only if it is farther than the tolerance from the last kept one: a fast method for lines from
// instruments that report more often than they move. One thread per row, because each result depends on the previous
// one.
extern "C" __global__ void simplify_by_spacing(Lines lines, double tolerance, unsigned char* keep) {
  const double least = tolerance * tolerance;
  for (int row = first_row(); row < lines.rows; row += row_step()) {
    if (lines.state(row) != State::Present) continue;
    const Range range = lines.coordinates(row);
    Point last = lines.at[range.first];
    for (int i = range.first; i < range.last; ++i) {
      const bool end = i == range.first || i == range.last - 1;
      const bool far = squared_distance(last, lines.at[i]) > least;
      keep[i] = end || far ? 1 : 0;
      if (far) last = lines.at[i];
    }
  }
}

// Marks coordinates that can be removed without any change: those that repeat the previous one, and vertices exactly on
// the segment between their neighbors.
extern "C" __global__ void simplify_exactly(Lines lines, int coordinates, unsigned char* keep) {
  for (int i = first_row(); i < coordinates; i += row_step()) {
    const int row = row_of(lines.offsets, lines.rows, i);
    const Range range = lines.coordinates(row);
    bool stays = true;
    if (i > range.first && i < range.last - 1) {
      const Point p = lines.at[i];
      const Point before = lines.at[i - 1];
      // Of a run of equal coordinates, tests the first one with the coordinate after the run.
      int behind = i + 1;
      while (behind < range.last - 1 && same(lines.at[behind], p)) ++behind;
      stays = !same(p, before) && !on_segment({before, lines.at[behind]}, p);
    }
    keep[i] = stays ? 1 : 0;
  }
}

// Counts the coordinates that each row keeps. Rings that would keep fewer than `least_kept` (four for a closed ring)
// keep all of theirs, because they would no longer be rings. One warp per row.
extern "C" __global__ void simplify_counts(Lines lines, int least_kept, unsigned char* keep, int* counts) {
  for (int row = first_warp(); row < lines.rows; row += warp_step()) {
    const Range range = lines.state(row) == State::Present ? lines.coordinates(row) : Range{0, 0};
    int count = 0;
    for (int i = range.first + lane(); i < range.last; i += 32) count += keep[i] != 0 ? 1 : 0;
    count = over_warp<Sum<int>>(count);
    if (count < least_kept && !range.empty()) {
      for (int i = range.first + lane(); i < range.last; i += 32) keep[i] = 1;
      count = range.size();
    }
    if (lane() == 0) counts[row] = count;
  }
}
