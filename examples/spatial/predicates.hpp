// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "spatial/column.hpp"

/// Exact tests of the side of a line or polygon that a point is on. Compile with -ffp-contract=off: the error terms
/// below are those of the roundings as written.
namespace spatial {

/// An exact sum of doubles: non-overlapping components by increasing magnitude, possibly with zeros (Shewchuk, Adaptive
/// Precision Floating-Point Arithmetic, 1997).
class Expansion {
 public:
  void add_product(double a, double b) {
    const double product = a * b;
    add(std::fma(a, b, -product));
    add(product);
  }
  int sign() const {
    for (int i = size_ - 1; i >= 0; --i) {
      if (components_[i] != 0) return components_[i] > 0 ? 1 : -1;
    }
    return 0;
  }

 private:
  void add(double value) {
    for (int i = 0; i < size_; ++i) {
      const double sum = value + components_[i];
      const double added = sum - value;
      components_[i] = (value - (sum - added)) + (components_[i] - added);
      value = sum;
    }
    components_[size_++] = value;
  }

  double components_[12];  // components of the six products of a determinant
  int size_ = 0;
};

/// Computes the determinant from its six products, without any difference. It is rarely needed and therefore not
/// inlined.
[[gnu::noinline]] inline int orientation_exactly(Point a, Point b, Point c) {
  Expansion sum;
  sum.add_product(a.x, b.y);
  sum.add_product(-a.x, c.y);
  sum.add_product(-c.x, b.y);
  sum.add_product(-a.y, b.x);
  sum.add_product(a.y, c.x);
  sum.add_product(c.y, b.x);
  return sum.sign();
}

/// Returns 1 if a, b, c turn left, -1 if they turn right, and 0 if they are collinear. Exact unless a product overflows
/// or underflows, that is, for coordinates that are zero or between 1e-140 and 1e150.
inline int orientation(Point a, Point b, Point c) {
  const double left = (a.x - c.x) * (b.y - c.y);
  const double right = (a.y - c.y) * (b.x - c.x);
  const double determinant = left - right;
  const double magnitude = std::fabs(left) + std::fabs(right);
  constexpr double kBound = 3.3306690738754716e-16;  // (3 + 16 e) e, where e is 2^-53
  if (std::fabs(determinant) >= kBound * magnitude && magnitude > 0) return determinant > 0 ? 1 : -1;
  return orientation_exactly(a, b, c);
}

/// Counts the edges that a ray from a point to the right crosses. An edge includes its lower end but not its upper end,
/// so that a ray through a vertex counts once. A point on an edge is on the boundary.
class Crossings {
 public:
  explicit Crossings(Point point) : point_(point) {}

  void add(Point a, Point b) {
    if ((a.y > point_.y) != (b.y > point_.y)) {
      if (a.x < point_.x && b.x < point_.x) return;
      if (a.x > point_.x && b.x > point_.x) {
        odd_ = !odd_;
        return;
      }
      const int turn = orientation(a, b, point_);
      if (turn == 0) {
        on_boundary_ = true;
      } else if ((turn > 0) == (b.y > a.y)) {
        odd_ = !odd_;
      }
    } else if (b.y == point_.y) {
      // A ring returns to its first vertex: each vertex is the end of an edge, so testing the ends is enough.
      on_boundary_ = on_boundary_ || b.x == point_.x || (a.y == point_.y && (a.x <= point_.x) != (b.x <= point_.x));
    }
  }
  bool on_boundary() const { return on_boundary_; }
  bool inside() const { return odd_ && !on_boundary_; }

 private:
  const Point point_;
  bool odd_ = false;
  bool on_boundary_ = false;
};

/// Returns whether a point is inside an odd number of the rings of a row and on none of them.
inline bool inside(const PolygonColumn& polygons, std::size_t row, Point point) {
  Crossings crossings(point);
  const double* x = polygons.x.data();
  const double* y = polygons.y.data();
  for (std::int32_t ring = polygons.rings[row]; ring < polygons.rings[row + 1]; ++ring) {
    const std::int32_t last = polygons.offsets[ring + 1];
    std::int32_t i = polygons.offsets[ring];
    if (i == last) continue;
    // Most edges are entirely above or below the point, which one comparison per vertex detects.
    for (bool above = y[i] > point.y; ++i < last;) {
      const bool was_above = above;
      above = y[i] > point.y;
      if (above != was_above || y[i] == point.y) crossings.add({x[i - 1], y[i - 1]}, {x[i], y[i]});
    }
    if (crossings.on_boundary()) return false;
  }
  return crossings.inside();
}

}  // namespace spatial
