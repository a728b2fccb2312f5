// SPDX-License-Identifier: Apache-2.0
#include "spatial/column.hpp"

#include <bit>

namespace spatial {

Bitmap::Bitmap(std::size_t size, bool value) : words_((size + 31) / 32, value ? ~0u : 0u), size_(size) {
  if (value && size % 32 != 0) words_.back() = (1u << (size % 32)) - 1;
}

void Bitmap::push_back(bool value) {
  if (size_ % 32 == 0) words_.push_back(0);
  set(size_++, value);
}

std::size_t Bitmap::count() const {
  std::size_t count = 0;
  for (const std::uint32_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
  return count;
}

void PointColumn::add(Point point) {
  x.push_back(point.x);
  y.push_back(point.y);
  valid.push_back(true);
}

void PointColumn::add_empty() { add({kNotANumber, kNotANumber}); }

void PointColumn::add_null() {
  x.push_back(kNotANumber);
  y.push_back(kNotANumber);
  valid.push_back(false);
}

void PolygonColumn::add_ring(const std::vector<Point>& vertices) {
  for (const Point& vertex : vertices) {
    x.push_back(vertex.x);
    y.push_back(vertex.y);
  }
  shells.push_back(offsets.size() - 1 == static_cast<std::size_t>(rings.back()));
  offsets.push_back(static_cast<std::int32_t>(x.size()));
}

void PolygonColumn::add_shell(const std::vector<Point>& vertices) {
  add_ring(vertices);
  shells.set(shells.size() - 1, true);
}

void PolygonColumn::end_row() {
  rings.push_back(static_cast<std::int32_t>(offsets.size() - 1));
  valid.push_back(true);
}

void PolygonColumn::add_null() {
  rings.push_back(rings.back());
  valid.push_back(false);
}

namespace {

/// Returns whether a row is one closed ring of four sides, alternately parallel to the x and y axes.
bool rectangle(const PolygonColumn& polygons, std::size_t row) {
  const std::int32_t ring = polygons.rings[row];
  if (polygons.rings[row + 1] - ring != 1) return false;
  const std::int32_t first = polygons.offsets[ring];
  if (polygons.offsets[ring + 1] - first != 5) return false;
  const double* x = polygons.x.data() + first;
  const double* y = polygons.y.data() + first;
  const bool level_first = y[0] == y[1] && x[1] == x[2] && y[2] == y[3] && x[3] == x[0];
  const bool upright_first = x[0] == x[1] && y[1] == y[2] && x[2] == x[3] && y[3] == y[0];
  return x[4] == x[0] && y[4] == y[0] && (level_first || upright_first);
}

}  // namespace

bool all_rectangles(const PolygonColumn& polygons) {
  for (std::size_t row = 0; row < polygons.rows(); ++row) {
    if (polygons.rings[row] != polygons.rings[row + 1] && !rectangle(polygons, row)) return false;
  }
  return true;
}

namespace {

constexpr std::uint64_t kEmptyDigest = 0xcbf29ce484222325;

std::uint64_t with_byte(std::uint64_t hash, std::uint32_t byte) { return (hash ^ (byte & 0xff)) * 0x100000001b3; }

}  // namespace

std::uint64_t byte_digest(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t hash = kEmptyDigest;
  for (const std::uint8_t byte : bytes) hash = with_byte(hash, byte);
  return hash;
}

std::uint64_t digest(const Pairs& pairs) {
  std::uint64_t hash = kEmptyDigest;
  const auto add = [&hash](std::int32_t number) {
    for (unsigned shift = 0; shift < 32; shift += 8)
      hash = with_byte(hash, static_cast<std::uint32_t>(number) >> shift);
  };
  for (const Pair& pair : pairs) {
    add(pair.point);
    add(pair.polygon);
  }
  return hash;
}

}  // namespace spatial
