#pragma once

#include <cmath>

#include "spatial/column.hpp"

/// On which side of a line a point lies, and of a polygon, without error. To be compiled with -ffp-contract=off: the
/// tails below are of the roundings that are written.
namespace spatial {

/// A sum of doubles, exactly: components that do not overlap, by growing magnitude, zeros among them (Shewchuk,
/// Adaptive Precision Floating-Point Arithmetic, 1997).
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

  double components_[12];  // of the six products of a determinant
  int size_ = 0;
};

/// The determinant by its six products, none of which is of a difference. Hardly ever needed, and so kept out of the
/// way of what is.
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

/// 1 where a, b, c turn to the left, -1 where they turn to the right, 0 where they are on one line. Exact unless a
/// product overflows or underflows: for coordinates that are zero or between 1e-140 and 1e150.
inline int orientation(Point a, Point b, Point c) {
  const double left = (a.x - c.x) * (b.y - c.y);
  const double right = (a.y - c.y) * (b.x - c.x);
  const double determinant = left - right;
  const double magnitude = std::fabs(left) + std::fabs(right);
  constexpr double kBound = 3.3306690738754716e-16;  // (3 + 16 e) e, where e is 2^-53
  if (std::fabs(determinant) >= kBound * magnitude && magnitude > 0) return determinant > 0 ? 1 : -1;
  return orientation_exactly(a, b, c);
}

/// Counts the edges that a ray from a point to the right goes through. An edge counts from its lower end up to but not
/// including its upper one, so that a ray through a vertex counts once; a point on an edge is on the boundary.
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
      // A ring comes back to its first vertex: each is the end of an edge, and asking for ends is enough.
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

/// Whether a point is inside of an odd number of the rings of a row, and on none.
inline bool inside(const PolygonColumn& polygons, std::size_t row, Point point) {
  Crossings crossings(point);
  const double* x = polygons.x.data();
  const double* y = polygons.y.data();
  for (std::int32_t ring = polygons.rings[row]; ring < polygons.rings[row + 1]; ++ring) {
    const std::int32_t last = polygons.offsets[ring + 1];
    std::int32_t i = polygons.offsets[ring];
    if (i == last) continue;
    // Nearly all edges are above the point or below it altogether, which one comparison a vertex says.
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
