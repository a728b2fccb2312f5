// Predicates and distances of two segments, and of a point and a segment.
#pragma once

#include "exact.cuh"

// Returns whether a point that is on the line through a segment is on the segment too.
__device__ inline bool within_box(Segment s, Point p) { return contains(box_of(s), p); }

__device__ inline bool on_segment(Segment s, Point p) { return within_box(s, p) && orientation(s.a, s.b, p) == 0; }

// How two segments meet. They touch if an end of one is on the other; they overlap if they share more than one point.
enum class Meeting : unsigned char { Apart = 0, Touch = 1, Cross = 2, Overlap = 3 };

// Classifies two collinear segments by the intersection of their projections on the longer axis of the first.
__device__ inline Meeting meeting_on_one_line(Segment s, Segment t) {
  const bool by_x = fabs(s.b.x - s.a.x) >= fabs(s.b.y - s.a.y);
  const double s0 = by_x ? s.a.x : s.a.y;
  const double s1 = by_x ? s.b.x : s.b.y;
  const double t0 = by_x ? t.a.x : t.a.y;
  const double t1 = by_x ? t.b.x : t.b.y;
  const double low = larger(smaller(s0, s1), smaller(t0, t1));
  const double high = smaller(larger(s0, s1), larger(t0, t1));
  if (low > high) return Meeting::Apart;
  return low == high ? Meeting::Touch : Meeting::Overlap;
}

// Exact: every sign in it is computed exactly.
__device__ inline Meeting meeting(Segment s, Segment t) {
  if (!overlap(box_of(s), box_of(t))) return Meeting::Apart;
  const int ta = orientation(s.a, s.b, t.a);
  const int tb = orientation(s.a, s.b, t.b);
  if (ta * tb > 0) return Meeting::Apart;
  const int sa = orientation(t.a, t.b, s.a);
  const int sb = orientation(t.a, t.b, s.b);
  if (sa * sb > 0) return Meeting::Apart;
  if (ta == 0 && tb == 0 && sa == 0 && sb == 0) {
    // A segment of length zero has no line: it is a point that is on the other segment or not.
    if (same(s.a, s.b)) return within_box(t, s.a) ? Meeting::Touch : Meeting::Apart;
    if (same(t.a, t.b)) return within_box(s, t.a) ? Meeting::Touch : Meeting::Apart;
    return meeting_on_one_line(s, t);
  }
  if (ta != 0 && tb != 0 && sa != 0 && sb != 0) return Meeting::Cross;
  const bool touch = (ta == 0 && within_box(s, t.a)) || (tb == 0 && within_box(s, t.b)) ||
                     (sa == 0 && within_box(t, s.a)) || (sb == 0 && within_box(t, s.b));
  return touch ? Meeting::Touch : Meeting::Apart;
}

// Returns the crossing of two segments that cross. Uses double-double, because nearly parallel segments cause
// cancellation.
__device__ inline Point crossing(Segment s, Segment t) {
  const DoubleDouble sx = difference(s.b.x, s.a.x);
  const DoubleDouble sy = difference(s.b.y, s.a.y);
  const DoubleDouble tx = difference(t.b.x, t.a.x);
  const DoubleDouble ty = difference(t.b.y, t.a.y);
  const DoubleDouble numerator = difference(t.a.x, s.a.x) * ty - difference(t.a.y, s.a.y) * tx;
  const DoubleDouble share = numerator / (sx * ty - sy * tx);
  const DoubleDouble x = DoubleDouble{s.a.x, 0} + share * sx;
  const DoubleDouble y = DoubleDouble{s.a.y, 0} + share * sy;
  // Rounding must not move the point out of either box.
  const Box a = box_of(s);
  const Box b = box_of(t);
  return {clamped(x.high, larger(a.min_x, b.min_x), smaller(a.max_x, b.max_x)),
          clamped(y.high, larger(a.min_y, b.min_y), smaller(a.max_y, b.max_y))};
}

// Returns the location on the segment, from 0 to 1, that is nearest to the point.
__device__ inline double share_of_nearest(Segment s, Point p) {
  const Point d = minus(s.b, s.a);
  const double length = dot(d, d);
  if (length == 0) return 0;
  return clamped(dot(minus(p, s.a), d) / length, 0.0, 1.0);
}

__device__ inline Point nearest_on(Segment s, Point p) { return between(s.a, s.b, share_of_nearest(s, p)); }

// Squared distances, for finding a minimum: one root at the end is cheaper than one for each.
__device__ inline double squared_distance(Segment s, Point p) { return squared_distance(nearest_on(s, p), p); }

// Segments that meet have distance 0; otherwise an end of one is nearest to the other.
__device__ inline double squared_distance(Segment s, Segment t) {
  if (meeting(s, t) != Meeting::Apart) return 0;
  return smaller(smaller(squared_distance(s, t.a), squared_distance(s, t.b)),
                 smaller(squared_distance(t, s.a), squared_distance(t, s.b)));
}
