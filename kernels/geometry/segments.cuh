// Two segments, and a point and a segment.
#pragma once

#include "exact.cuh"

// Whether a point that is on the line through a segment is on the segment too.
__device__ inline bool within_box(Segment s, Point p) { return contains(box_of(s), p); }

__device__ inline bool on_segment(Segment s, Point p) { return within_box(s, p) && orientation(s.a, s.b, p) == 0; }

// How two segments meet. They touch where an end of one lies on the other; they overlap where they share more than a
// point.
enum class Meeting : unsigned char { Apart = 0, Touch = 1, Cross = 2, Overlap = 3 };

// Of two segments on one line: by what their projections on the longer axis of the first have in common.
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

// Without error: every sign in it is exact.
__device__ inline Meeting meeting(Segment s, Segment t) {
  if (!overlap(box_of(s), box_of(t))) return Meeting::Apart;
  const int ta = orientation(s.a, s.b, t.a);
  const int tb = orientation(s.a, s.b, t.b);
  if (ta * tb > 0) return Meeting::Apart;
  const int sa = orientation(t.a, t.b, s.a);
  const int sb = orientation(t.a, t.b, s.b);
  if (sa * sb > 0) return Meeting::Apart;
  if (ta == 0 && tb == 0 && sa == 0 && sb == 0) {
    // A segment of no length has no line: it is a point, and on the other or not.
    if (same(s.a, s.b)) return within_box(t, s.a) ? Meeting::Touch : Meeting::Apart;
    if (same(t.a, t.b)) return within_box(s, t.a) ? Meeting::Touch : Meeting::Apart;
    return meeting_on_one_line(s, t);
  }
  if (ta != 0 && tb != 0 && sa != 0 && sb != 0) return Meeting::Cross;
  const bool touch = (ta == 0 && within_box(s, t.a)) || (tb == 0 && within_box(s, t.b)) ||
                     (sa == 0 && within_box(t, s.a)) || (sb == 0 && within_box(t, s.b));
  return touch ? Meeting::Touch : Meeting::Apart;
}

// Where two segments cross, which they do. In double-double, because nearly parallel ones cancel nearly everything.
__device__ inline Point crossing(Segment s, Segment t) {
  const DoubleDouble sx = difference(s.b.x, s.a.x);
  const DoubleDouble sy = difference(s.b.y, s.a.y);
  const DoubleDouble tx = difference(t.b.x, t.a.x);
  const DoubleDouble ty = difference(t.b.y, t.a.y);
  const DoubleDouble numerator = difference(t.a.x, s.a.x) * ty - difference(t.a.y, s.a.y) * tx;
  const DoubleDouble share = numerator / (sx * ty - sy * tx);
  const DoubleDouble x = DoubleDouble{s.a.x, 0} + share * sx;
  const DoubleDouble y = DoubleDouble{s.a.y, 0} + share * sy;
  // Rounding must not carry it out of either.
  const Box a = box_of(s);
  const Box b = box_of(t);
  return {clamped(x.high, larger(a.min_x, b.min_x), smaller(a.max_x, b.max_x)),
          clamped(y.high, larger(a.min_y, b.min_y), smaller(a.max_y, b.max_y))};
}

// How far along the segment, from 0 to 1, the place is that is nearest to the point.
__device__ inline double share_of_nearest(Segment s, Point p) {
  const Point d = minus(s.b, s.a);
  const double length = dot(d, d);
  if (length == 0) return 0;
  return clamped(dot(minus(p, s.a), d) / length, 0.0, 1.0);
}

__device__ inline Point nearest_on(Segment s, Point p) { return between(s.a, s.b, share_of_nearest(s, p)); }

// Squares, of which the least is looked for: a root at the end is cheaper than one for each.
__device__ inline double squared_distance(Segment s, Point p) { return squared_distance(nearest_on(s, p), p); }

// Segments that meet are at no distance; else an end of one is nearest to the other.
__device__ inline double squared_distance(Segment s, Segment t) {
  if (meeting(s, t) != Meeting::Apart) return 0;
  return smaller(smaller(squared_distance(s, t.a), squared_distance(s, t.b)),
                 smaller(squared_distance(t, s.a), squared_distance(t, s.b)));
}
