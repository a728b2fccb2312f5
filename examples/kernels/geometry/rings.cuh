// Operations on single rings: the side that a point is on, and the area.
#pragma once

#include "segments.cuh"

enum class Side : signed char { Outside = -1, Boundary = 0, Inside = 1 };

// Counts the edges that a ray from the point to the right crosses. An edge includes its lower end but not its upper
// end, so that a ray through a vertex counts once. The side of an edge that the point is on is exact.
__device__ inline Side side_of_ring(const Coordinates& at, Range ring, Point p) {
  bool inside = false;
  for (int i = ring.first; i + 1 < ring.last; ++i) {
    const Segment edge = at.segment(i);
    const bool upward = edge.a.y <= p.y && edge.b.y > p.y;
    const bool downward = edge.b.y <= p.y && edge.a.y > p.y;
    if (!upward && !downward) {
      if (edge.a.y == p.y && edge.b.y == p.y && within_box(edge, p)) return Side::Boundary;
      if (same(edge.a, p) || same(edge.b, p)) return Side::Boundary;
      continue;
    }
    const int turn = orientation(edge.a, edge.b, p);
    if (turn == 0) return Side::Boundary;
    if ((turn > 0) == upward) inside = !inside;
  }
  return inside ? Side::Inside : Side::Outside;
}

// The rings of one polygon, the first of which is its shell.
template <class Column>
__device__ Side side_of_rings(const Column& column, Range rings, Point p) {
  if (rings.empty()) return Side::Outside;
  const Side of_shell = side_of_ring(column.at, column.ring(rings.first), p);
  if (of_shell != Side::Inside) return of_shell;
  for (int hole = rings.first + 1; hole < rings.last; ++hole) {
    const Side of_hole = side_of_ring(column.at, column.ring(hole), p);
    if (of_hole == Side::Boundary) return Side::Boundary;
    if (of_hole == Side::Inside) return Side::Outside;
  }
  return Side::Inside;
}

__device__ inline Side side_of(const Polygons& polygons, int row, Point p) {
  return side_of_rings(polygons, polygons.rings_of(row), p);
}

// The parts of a valid multipolygon have disjoint interiors.
__device__ inline Side side_of(const MultiPolygons& polygons, int row, Point p) {
  const Range parts = polygons.parts_of(row);
  Side side = Side::Outside;
  for (int part = parts.first; part < parts.last; ++part) {
    const Side of_part = side_of_rings(polygons, polygons.rings_of_part(part), p);
    if (of_part == Side::Inside) return of_part;
    if (of_part == Side::Boundary) side = of_part;
  }
  return side;
}

// Returns twice the area, positive if the ring turns left. Measured relative to its first vertex: far from the origin,
// the products of the coordinates would cancel to nothing but rounding errors.
__device__ inline double twice_signed_area(const Coordinates& at, Range ring) {
  if (ring.size() < 4) return 0;
  const Point origin = at[ring.first];
  double sum = 0;
  Point a = {0, 0};
  for (int i = ring.first + 1; i < ring.last; ++i) {
    const Point b = minus(at[i], origin);
    sum += cross(a, b);
    a = b;
  }
  return sum;
}
