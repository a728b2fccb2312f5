// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

/// A small spatial library: columns of geometries, and operations on them that run on the CPU or on a device; see
/// examples/spatial/README.md. Columns have the layout that the kernels of examples/kernels/geometry read
/// (geometry.cuh): coordinates are doubles in two arrays, offsets and row numbers have 32 bits, and a bitmap marks the
/// rows that are not null.
///
/// Null is not empty. A null row is unknown, and every result computed from it is null. An empty row is known to have
/// no coordinates: no point is within it, and its box is the empty box.
namespace spatial {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
/// Offsets and row numbers have 32 bits on every device.
inline constexpr std::size_t kMaxRows = std::numeric_limits<std::int32_t>::max();

/// One bit per row: bit i % 32 of word i / 32 is row i. The bits after the last row are zero.
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

/// A closed box: its sides belong to it.
struct Box {
  double min_x = kInfinity;
  double min_y = kInfinity;
  double max_x = -kInfinity;
  double max_y = -kInfinity;

  bool empty() const { return !(min_x <= max_x); }
  bool covers(Point p) const { return min_x <= p.x && p.x <= max_x && min_y <= p.y && p.y <= max_y; }
  /// Returns whether `p` is in the interior, without the sides.
  bool surrounds(Point p) const { return min_x < p.x && p.x < max_x && min_y < p.y && p.y < max_y; }
  void add(Point p) {
    if (p.x < min_x) min_x = p.x;
    if (p.y < min_y) min_y = p.y;
    if (p.x > max_x) max_x = p.x;
    if (p.y > max_y) max_y = p.y;
  }
};

/// One point per row, on the host. Empty and null rows have NaN for both coordinates, as empty points in WKB do.
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

/// One polygon per row, on the host: rings[r] … rings[r + 1] are the rings of row r, and offsets[i] … offsets[i + 1]
/// the vertices of ring i, the last of which repeats the first. A part of a row is a shell and the holes that follow
/// it. Predicates do not distinguish shells and holes: a point inside an odd number of rings is inside, which is
/// correct for every valid polygon and multipolygon. Null and empty rows have no rings.
struct PolygonColumn {
  std::vector<std::int32_t> rings{0};
  std::vector<std::int32_t> offsets{0};
  std::vector<double> x;
  std::vector<double> y;
  Bitmap valid;
  Bitmap shells;  ///< one bit per ring

  std::size_t rows() const { return rings.size() - 1; }
  bool null(std::size_t row) const { return !valid[row]; }
  bool empty(std::size_t row) const { return valid[row] && rings[row] == rings[row + 1]; }

  /// Adds a ring to the row that the next `end_row` completes: the first ring of a row is a shell, each further one a
  /// hole. The last vertex must equal the first.
  void add_ring(const std::vector<Point>& vertices);
  /// Adds a ring that begins another part of the row.
  void add_shell(const std::vector<Point>& vertices);
  /// Completes a row from the rings added since the last row. Without any ring the polygon is empty.
  void end_row();
  void add_null();
};

/// Returns whether every row is null, empty, or a rectangle with sides parallel to the axes.
bool all_rectangles(const PolygonColumn& polygons);

/// The boxes of a column: all minimum x, then all minimum y, then all maximum x, then all maximum y. An empty row has
/// the empty box (minimum: infinity, maximum: minus infinity), a null row has NaN.
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

/// The areas of a column. An empty row has the area 0, a null row has NaN.
struct Areas {
  std::vector<double> values;
  Bitmap valid;

  std::size_t rows() const { return values.size(); }
};

/// One result per row: true, false, or null if one of the inputs is null.
struct Mask {
  Bitmap inside;  ///< zero if the row is null
  Bitmap valid;
  bool operator==(const Mask&) const = default;
};

/// Row `point` of the point column is within row `polygon` of the polygon column.
struct Pair {
  std::int32_t point = 0;
  std::int32_t polygon = 0;
  auto operator<=>(const Pair&) const = default;
};
/// Sorted by point, then by polygon.
using Pairs = std::vector<Pair>;

/// A geometry as WKB, or nullopt for null.
using Wkb = std::optional<std::string>;

/// The rows of a column as WKB: bytes[offsets[r]] … bytes[offsets[r + 1]] are row r. A null row has no bytes; an empty
/// row has the bytes of an empty geometry.
struct WkbColumn {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint32_t> offsets{0};
  Bitmap valid;

  std::size_t rows() const { return offsets.size() - 1; }
  Wkb operator[](std::size_t row) const {
    if (!valid[row]) return std::nullopt;
    return std::string(bytes.begin() + offsets[row], bytes.begin() + offsets[row + 1]);
  }
  bool operator==(const WkbColumn&) const = default;
};

/// One number per row, by which `dissolve` groups the rows of another column.
struct KeyColumn {
  std::vector<std::int32_t> values;

  std::size_t rows() const { return values.size(); }
};

/// The result of `dissolve`: one row per distinct key, by increasing key.
struct Dissolved {
  KeyColumn keys;
  PolygonColumn polygons;
};
/// Read a column of WKB with GEOS. Points accept POINT; polygons accept POLYGON and MULTIPOLYGON. Third and fourth
/// coordinates are dropped. The error names the row if the row is not WKB, has another geometry type, or has a
/// coordinate that is not finite.
kiln::Result<PointColumn> read_points(const std::vector<Wkb>& rows);
kiln::Result<PolygonColumn> read_polygons(const std::vector<Wkb>& rows);

/// Returns the 64-bit FNV-1a hash of the pairs, each as two little-endian 32-bit numbers.
std::uint64_t digest(const Pairs& pairs);
/// Returns the 64-bit FNV-1a hash of the bytes.
std::uint64_t byte_digest(const std::vector<std::uint8_t>& bytes);

}  // namespace spatial
