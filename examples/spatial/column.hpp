#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

/// A small spatial library: columns of geometries, and operations on them that run on the processor or on a device;
/// docs/spatial.md. Columns lie as the kernels of kernels/geometry read them (geometry.cuh): coordinates are doubles in
/// two arrays, offsets and row numbers are 32 bits, a bitmap says which rows are there at all.
///
/// Null is not empty. Nothing is known of a null row, and what is computed of it is null. An empty one is known to have
/// no coordinates: nothing is within it, and its box is the box of nothing.
namespace spatial {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
/// Offsets and row numbers are of 32 bits on every device.
inline constexpr std::size_t kMostRows = std::numeric_limits<std::int32_t>::max();

/// One bit a row: bit i % 32 of word i / 32 is row i; the bits behind the last row are zero.
class Bitmap {
 public:
  Bitmap() = default;
  Bitmap(std::size_t size, bool value);

  std::size_t size() const { return size_; }
  bool operator[](std::size_t row) const { return ((words_[row >> 5] >> (row & 31)) & 1u) != 0; }
  void set(std::size_t row, bool value) {
    const std::uint32_t bit = 1u << (row & 31);
    words_[row >> 5] = value ? words_[row >> 5] | bit : words_[row >> 5] & ~bit;
  }
  void push_back(bool value);
  std::size_t count() const;

  const std::vector<std::uint32_t>& words() const { return words_; }
  std::vector<std::uint32_t>& words() { return words_; }
  bool operator==(const Bitmap&) const = default;

 private:
  std::vector<std::uint32_t> words_;
  std::size_t size_ = 0;
};

struct Point {
  double x = 0;
  double y = 0;
  bool operator==(const Point&) const = default;
};

/// Closed: its sides belong to it.
struct Box {
  double min_x = kInfinity;
  double min_y = kInfinity;
  double max_x = -kInfinity;
  double max_y = -kInfinity;

  bool empty() const { return !(min_x <= max_x); }
  bool covers(Point p) const { return min_x <= p.x && p.x <= max_x && min_y <= p.y && p.y <= max_y; }
  /// Without its sides.
  bool surrounds(Point p) const { return min_x < p.x && p.x < max_x && min_y < p.y && p.y < max_y; }
  void add(Point p) {
    if (p.x < min_x) min_x = p.x;
    if (p.y < min_y) min_y = p.y;
    if (p.x > max_x) max_x = p.x;
    if (p.y > max_y) max_y = p.y;
  }
};

/// One point a row, on the host. An empty one has NaN for both coordinates, as in WKB; a null one too.
struct PointColumn {
  std::vector<double> x;
  std::vector<double> y;
  Bitmap valid;

  std::size_t rows() const { return x.size(); }
  bool null(std::size_t row) const { return !valid[row]; }
  bool empty(std::size_t row) const { return valid[row] && x[row] != x[row]; }
  Point operator[](std::size_t row) const { return {x[row], y[row]}; }

  void add(Point point);
  void add_empty();
  void add_null();
};

/// One polygon a row, on the host: rings[r] … rings[r + 1] are the rings of row r, and offsets[i] … offsets[i + 1] the
/// vertices of ring i, the last of which is the first again. Shells and holes are not told apart: what is inside of an
/// odd number of rings is inside, which is right for every valid polygon and multipolygon. A null row and an empty one
/// have no rings.
struct PolygonColumn {
  std::vector<std::int32_t> rings{0};
  std::vector<std::int32_t> offsets{0};
  std::vector<double> x;
  std::vector<double> y;
  Bitmap valid;

  std::size_t rows() const { return rings.size() - 1; }
  bool null(std::size_t row) const { return !valid[row]; }
  bool empty(std::size_t row) const { return valid[row] && rings[row] == rings[row + 1]; }

  /// A ring that the next `end_row` makes part of a row; it ends with the vertex that it begins with.
  void add_ring(const std::vector<Point>& vertices);
  /// The rings that were added since the last row are a polygon; without any it is an empty one.
  void end_row();
  void add_null();
};

/// Whether no row is anything but null, empty, or a rectangle with sides along the axes.
bool all_rectangles(const PolygonColumn& polygons);

/// The boxes of a column: all least x, then all least y, then all largest x, then all largest y. An empty row's is the
/// box of nothing (least: infinity, largest: minus infinity), a null row's is NaN.
struct Boxes {
  std::vector<double> sides;
  Bitmap valid;

  std::size_t rows() const { return valid.size(); }
  bool null(std::size_t row) const { return !valid[row]; }
  bool empty(std::size_t row) const { return valid[row] && !(sides[row] <= sides[2 * rows() + row]); }
  Box operator[](std::size_t row) const {
    return {sides[row], sides[rows() + row], sides[2 * rows() + row], sides[3 * rows() + row]};
  }
};

/// An answer a row: yes, no, or null where one of the inputs is.
struct Mask {
  Bitmap inside;  ///< zero where it is null
  Bitmap valid;
  bool operator==(const Mask&) const = default;
};

/// Row `point` of the one column is within row `polygon` of the other.
struct Pair {
  std::int32_t point = 0;
  std::int32_t polygon = 0;
  auto operator<=>(const Pair&) const = default;
};
/// By point, then by polygon.
using Pairs = std::vector<Pair>;

/// A geometry as WKB, or nothing for null.
using Wkb = std::optional<std::string>;
/// Read by GEOS. An error where a row is no WKB, is of another family, or has a coordinate that is not finite; it names
/// the row. Points: POINT. Polygons: POLYGON and MULTIPOLYGON. Third and fourth coordinates are left behind.
kiln::Result<PointColumn> read_points(const std::vector<Wkb>& rows);
kiln::Result<PolygonColumn> read_polygons(const std::vector<Wkb>& rows);

/// FNV-1a of 64 bits over the pairs, each as two little-endian numbers of 32 bits.
std::uint64_t digest(const Pairs& pairs);

}  // namespace spatial
