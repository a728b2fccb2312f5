// Validity checks of polygons as defined by the standard. There is one kernel for each kind of defect, so that the
// result names the defect. Each kernel adds its bit to the row's problems. The cheap kernels run first, and later ones
// skip the rows in which they found a defect. Null and empty rows have no problems.
#include "block.cuh"
#include "rings.cuh"

namespace {

enum Problem : unsigned {
  kNotFinite = 1,     // a coordinate is NaN or infinite
  kTooShort = 2,      // a ring has fewer than four coordinates
  kOpen = 4,          // a ring does not end where it begins
  kRepeated = 8,      // a coordinate is repeated: allowed, but reported
  kCrossing = 16,     // a ring crosses itself or touches itself along a segment
  kRingsCross = 32,   // two rings cross
  kHoleOutside = 64,  // a hole is not in its shell
  kHoleInHole = 128,  // a hole is in another hole
  kNoArea = 256       // the coordinates of a ring are collinear
};

__device__ bool unsound(unsigned problems) { return (problems & (kNotFinite | kTooShort | kOpen)) != 0; }

// Returns whether two segments of a ring are consecutive and so share an end. The last and the first are consecutive
// too.
__device__ bool are_neighbors(int i, int k, Range ring) {
  if (k == i + 1 || i == k + 1) return true;
  const int last = ring.last - 2;
  return (i == ring.first && k == last) || (k == ring.first && i == last);
}

// Consecutive segments can share only their common end: neither must turn back over the other.
__device__ bool turns_back(Segment s, Segment t) { return meeting(s, t) == Meeting::Overlap; }

// Returns the side of a ring that another ring is on: that of its first vertex that is not on the ring.
__device__ Side side_of_other(const Polygons& polygons, Range ring, Range other) {
  for (int i = other.first; i < other.last; ++i) {
    const Side side = side_of_ring(polygons.at, ring, polygons.at[i]);
    if (side != Side::Boundary) return side;
  }
  return Side::Boundary;
}

}  // namespace

// Checks each coordinate in one pass. One thread per ring; `problems` is per polygon.
extern "C" __global__ void check_coordinates(Polygons polygons, int rings, unsigned* problems) {
  for (int number = first_row(); number < rings; number += row_step()) {
    const int row = row_of(polygons.rings, polygons.rows, number);
    if (polygons.state(row) != State::Present) continue;
    const Range ring = polygons.ring(number);
    unsigned found = 0;
    for (int i = ring.first; i < ring.last; ++i) {
      if (!is_finite(polygons.at.x[i]) || !is_finite(polygons.at.y[i])) found |= kNotFinite;
      if (i > ring.first && same(polygons.at[i], polygons.at[i - 1])) found |= kRepeated;
    }
    if (ring.size() < 4) found |= kTooShort;
    if (!ring.empty() && !same(polygons.at[ring.first], polygons.at[ring.last - 1])) found |= kOpen;
    if (found != 0) atomicOr(problems + row, found);
  }
}

// Finds rings without area, exactly: no three of their vertices turn. One warp per ring.
extern "C" __global__ void check_area(Polygons polygons, int rings, unsigned* problems) {
  for (int number = first_warp(); number < rings; number += warp_step()) {
    const int row = row_of(polygons.rings, polygons.rows, number);
    if (polygons.state(row) != State::Present || unsound(problems[row])) continue;
    const Range ring = polygons.ring(number);
    // With the first vertex and the first one that differs from it, any third vertex off their line suffices.
    const Point a = polygons.at[ring.first];
    int other = ring.first + 1;
    while (other < ring.last && same(polygons.at[other], a)) ++other;
    bool turns = false;
    for (int first = other; other < ring.last && first < ring.last && !turns; first += 32) {
      const int i = first + lane();
      const bool mine = i < ring.last && orientation(a, polygons.at[other], polygons.at[i]) != 0;
      turns = __any_sync(0xffffffffu, mine);
    }
    if (lane() == 0 && !turns) atomicOr(problems + row, kNoArea);
  }
}

// Finds rings that cross or overlap themselves. One block per ring; the threads divide the pairs of segments.
extern "C" __global__ void check_crossings(Polygons polygons, int rings, unsigned* problems) {
  const int number = static_cast<int>(blockIdx.x);
  if (number >= rings) return;
  const int row = row_of(polygons.rings, polygons.rows, number);
  if (polygons.state(row) != State::Present || unsound(problems[row])) return;
  const Range ring = polygons.ring(number);
  bool found = false;
  for (int i = ring.first + static_cast<int>(threadIdx.x); i + 1 < ring.last && !found;
       i += static_cast<int>(blockDim.x)) {
    const Segment s = polygons.at.segment(i);
    if (same(s.a, s.b)) continue;
    for (int k = i + 1; k + 1 < ring.last && !found; ++k) {
      const Segment t = polygons.at.segment(k);
      if (same(t.a, t.b)) continue;
      if (are_neighbors(i, k, ring)) {
        found = turns_back(s, t);
        continue;
      }
      // Two vertices at one location touch, which a ring must not do with itself. The segments around a repeated
      // coordinate still count as consecutive.
      const Meeting how = meeting(s, t);
      const bool around_repeated = same(s.b, t.a) && k == i + 2;
      found = how != Meeting::Apart && !(around_repeated && how == Meeting::Touch);
    }
  }
  const int any = __syncthreads_or(found ? 1 : 0);
  if (threadIdx.x == 0 && any != 0) atomicOr(problems + row, kCrossing);
}

// Finds rings of one polygon that cross each other or share a segment; touching is allowed. One block per polygon.
extern "C" __global__ void check_rings(Polygons polygons, unsigned* problems) {
  const int row = static_cast<int>(blockIdx.x);
  if (row >= polygons.rows || polygons.state(row) != State::Present || unsound(problems[row])) return;
  const Range rings = polygons.rings_of(row);
  bool found = false;
  for (int one = rings.first; one < rings.last; ++one) {
    const Range a = polygons.ring(one);
    for (int i = a.first + static_cast<int>(threadIdx.x); i + 1 < a.last && !found; i += static_cast<int>(blockDim.x)) {
      const Segment s = polygons.at.segment(i);
      for (int other = one + 1; other < rings.last && !found; ++other) {
        const Range b = polygons.ring(other);
        for (int k = b.first; k + 1 < b.last && !found; ++k) {
          const Meeting how = meeting(s, polygons.at.segment(k));
          found = how == Meeting::Cross || how == Meeting::Overlap;
        }
      }
    }
  }
  const int any = __syncthreads_or(found ? 1 : 0);
  if (threadIdx.x == 0 && any != 0) atomicOr(problems + row, kRingsCross);
}

// Finds holes outside their shell or within another hole. One thread per hole. Crossing rings are already known, so one
// vertex decides for the whole ring.
extern "C" __global__ void check_holes(Polygons polygons, int rings, unsigned* problems) {
  for (int number = first_row(); number < rings; number += row_step()) {
    const int row = row_of(polygons.rings, polygons.rows, number);
    if (polygons.state(row) != State::Present || unsound(problems[row])) continue;
    const Range all = polygons.rings_of(row);
    if (number == all.first) continue;
    const Range hole = polygons.ring(number);
    unsigned found = 0;
    if (side_of_other(polygons, polygons.ring(all.first), hole) == Side::Outside) found |= kHoleOutside;
    for (int other = all.first + 1; other < all.last; ++other) {
      if (other == number) continue;
      if (side_of_other(polygons, polygons.ring(other), hole) == Side::Inside) found |= kHoleInHole;
    }
    if (found != 0) atomicOr(problems + row, found);
  }
}

// Summarizes the problems: a bitmap of valid rows, a bitmap of known rows, and the number of rows with each problem.
// `ignored` lists problems that do not count, such as repeated coordinates.
extern "C" __global__ void sum_problems(Polygons polygons, const unsigned* problems, unsigned ignored, unsigned* sound,
                                        unsigned* valid, int* totals) {
  for (int row = first_row(); row < whole_warps(polygons.rows); row += row_step()) {
    const bool known = row < polygons.rows && polygons.state(row) != State::Null;
    const unsigned found = known ? problems[row] & ~ignored : 0;
    write_bits(sound, row, known && found == 0);
    write_bits(valid, row, known);
    for (int bit = 0; bit < 9; ++bit) {
      const unsigned with = __ballot_sync(0xffffffffu, ((found >> bit) & 1u) != 0);
      if (lane() == 0 && with != 0) atomicAdd(totals + bit, __popc(with));
    }
  }
}
