// Intersections of the segments of two columns: candidates by their boxes, then exact tests, then the points.
#include "block.cuh"
#include "rings.cuh"

namespace {

// The last coordinate of a line does not begin a segment.
__device__ int segments_in(Range range) { return range.size() > 1 ? range.size() - 1 : 0; }

// Calls `take` for each segment of the right row whose box overlaps that of a segment of the left row.
template <class F>
__device__ void for_candidates(const Lines& left, Range l, const Lines& right, Range r, F take) {
  for (int i = l.first; i + 1 < l.last; ++i) {
    const Box box = box_of(left.at.segment(i));
    for (int k = r.first; k + 1 < r.last; ++k) {
      if (overlap(box, box_of(right.at.segment(k)))) take(i, k);
    }
  }
}

__device__ bool both_present(const Lines& left, int l, const Lines& right, int r) {
  return left.state(l) == State::Present && right.state(r) == State::Present;
}

}  // namespace

// Counts for each pair of rows the pairs of segments whose boxes overlap.
extern "C" __global__ void segments_count_candidates(Lines left, Lines right, Pairs pairs, int* counts) {
  for (int i = first_row(); i < pairs.count; i += row_step()) {
    int count = 0;
    if (both_present(left, pairs.left[i], right, pairs.right[i])) {
      for_candidates(left, left.coordinates(pairs.left[i]), right, right.coordinates(pairs.right[i]),
                     [&](int, int) { ++count; });
    }
    counts[i] = count;
  }
}

// Writes these pairs. A segment is represented by the index of its first coordinate.
extern "C" __global__ void segments_fill_candidates(Lines left, Lines right, Pairs pairs, const int* offsets,
                                                    int* segments_left, int* segments_right) {
  for (int i = first_row(); i < pairs.count; i += row_step()) {
    if (!both_present(left, pairs.left[i], right, pairs.right[i])) continue;
    int next = offsets[i];
    for_candidates(left, left.coordinates(pairs.left[i]), right, right.coordinates(pairs.right[i]), [&](int l, int r) {
      segments_left[next] = l;
      segments_right[next] = r;
      ++next;
    });
  }
}

// Computes exactly how the segments of each candidate meet (`Meeting`).
extern "C" __global__ void segments_meet(Coordinates left, Coordinates right, Pairs segments, unsigned char* meetings) {
  for (int i = first_row(); i < segments.count; i += row_step()) {
    const Meeting how = meeting(left.segment(segments.left[i]), right.segment(segments.right[i]));
    meetings[i] = static_cast<unsigned char>(how);
  }
}

// Computes where they meet: the crossing, the end that touches, or the two ends of an overlap. For a single point,
// `from` and `to` are equal. If the segments do not meet, both are NaN.
extern "C" __global__ void segments_meeting_points(Coordinates left, Coordinates right, Pairs segments,
                                                   const unsigned char* meetings, double* from_x, double* from_y,
                                                   double* to_x, double* to_y) {
  for (int i = first_row(); i < segments.count; i += row_step()) {
    const Segment s = left.segment(segments.left[i]);
    const Segment t = right.segment(segments.right[i]);
    const Meeting how = static_cast<Meeting>(meetings[i]);
    Point from = {not_a_number(), not_a_number()};
    Point to = from;
    if (how == Meeting::Cross) {
      from = to = crossing(s, t);
    } else if (how != Meeting::Apart) {
      // An end of one segment is on the other. For an overlap, two different ends are.
      const Point ends[4] = {s.a, s.b, t.a, t.b};
      bool first = true;
      for (int k = 0; k < 4; ++k) {
        if (!on_segment(k < 2 ? t : s, ends[k])) continue;
        if (first) from = ends[k];
        to = first || same(to, from) ? ends[k] : to;
        first = false;
      }
    }
    from_x[i] = from.x;
    from_y[i] = from.y;
    to_x[i] = to.x;
    to_y[i] = to.y;
  }
}

// Computes whether the lines of each pair of rows have a point in common. One warp per pair: the lanes divide the
// segments of the left row, and all stop when one has found a meeting.
extern "C" __global__ void lines_intersect(Lines left, Lines right, Pairs pairs, unsigned char* answers) {
  for (int i = first_warp(); i < pairs.count; i += warp_step()) {
    const int l = pairs.left[i];
    const int r = pairs.right[i];
    bool found = false;
    if (both_present(left, l, right, r)) {
      const Range a = left.coordinates(l);
      const Range b = right.coordinates(r);
      for (int first = 0; first < segments_in(a) && !found; first += 32) {
        bool mine = false;
        const int at = a.first + first + lane();
        if (at + 1 < a.last) {
          const Segment s = left.at.segment(at);
          for (int k = b.first; k + 1 < b.last && !mine; ++k) mine = meeting(s, right.at.segment(k)) != Meeting::Apart;
        }
        found = __any_sync(0xffffffffu, mine);
      }
    }
    if (lane() == 0) answers[i] = found ? 1 : 0;
  }
}

// Computes whether the polygons of each pair of rows have a point in common: their boundaries meet, or one is within
// the other, and then each of its vertices is. One block per pair.
extern "C" __global__ void polygons_intersect(Polygons left, Polygons right, Pairs pairs, unsigned char* answers) {
  const int l = pairs.left[blockIdx.x];
  const int r = pairs.right[blockIdx.x];
  const bool present = left.state(l) == State::Present && right.state(r) == State::Present;
  bool found = false;
  if (present) {
    const Range rings_right = right.rings_of(r);
    for (int ring = left.rings[l]; ring < left.rings[l + 1] && !found; ++ring) {
      const Range a = left.ring(ring);
      for (int i = a.first + static_cast<int>(threadIdx.x); i + 1 < a.last && !found;
           i += static_cast<int>(blockDim.x)) {
        const Segment s = left.at.segment(i);
        for (int other = rings_right.first; other < rings_right.last && !found; ++other) {
          const Range b = right.ring(other);
          for (int k = b.first; k + 1 < b.last && !found; ++k)
            found = meeting(s, right.at.segment(k)) != Meeting::Apart;
        }
      }
    }
    if (threadIdx.x == 0 && !found) {
      found = side_of(right, r, left.at[left.coordinates(l).first]) != Side::Outside ||
              side_of(left, l, right.at[right.coordinates(r).first]) != Side::Outside;
    }
  }
  const int any = __syncthreads_or(found ? 1 : 0);
  if (threadIdx.x == 0) answers[blockIdx.x] = any != 0 ? 1 : 0;
}
