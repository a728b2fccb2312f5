// SPDX-License-Identifier: Apache-2.0
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>

#include "spatial/cpu/bands.hpp"
#include "spatial/cpu/grid.hpp"
#include "spatial/cpu/host_rows.hpp"
#include "spatial/cpu/variants.hpp"
#include "spatial/predicates.hpp"

namespace spatial::cpu {
namespace {

using Words = tbb::blocked_range<std::size_t>;

/// Calls `is_inside` for each row that is not null. One thread writes each word of the bitmap.
template <class Inside>
void ask(const PointColumn& points, std::size_t grain, const Inside& is_inside, Mask& mask) {
  std::vector<std::uint32_t>& words = mask.inside.words();
  tbb::parallel_for(Words(0, words.size(), grain), [&](const Words& range) {
    for (std::size_t word = range.begin(); word < range.end(); ++word) {
      const std::size_t last = std::min(32 * word + 32, points.rows());
      std::uint32_t bits = 0;
      for (std::size_t row = 32 * word; row < last; ++row) {
        if (is_inside(row, points[row])) bits |= 1u << (row % 32);
      }
      words[word] = bits & mask.valid.words()[word];
    }
  });
}

/// Minimum number of points for which preparing the polygon pays off.
constexpr std::size_t kPointsForBands = 16;

}  // namespace

// The box test, the row selection and the edge test are one pass here: a CPU gains nothing from storing the selected
// rows in between.
kiln::Result<PlacedMask> within(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons) {
  if (kiln::Status status = on_host(points, polygons); !status) return status.error();
  const PointColumn& column = *points.host();
  const PolygonColumn& shapes = *polygons.host();
  Mask mask{Bitmap(column.rows(), false), column.valid};
  if (shapes.rows() == column.rows()) {
    runtime::Stage stage(dispatch, "refine");
    std::vector<std::uint32_t>& words = mask.valid.words();
    for (std::size_t word = 0; word < words.size(); ++word) words[word] &= shapes.valid.words()[word];
    ask(
        column, 8, [&](std::size_t row, Point point) { return inside(shapes, row, point); }, mask);
    return PlacedMask(std::move(mask));
  }
  if (shapes.null(0)) {
    mask.valid = Bitmap(column.rows(), false);
    return PlacedMask(std::move(mask));
  }
  std::optional<EdgeBands> bands;
  if (column.rows() >= kPointsForBands) {
    runtime::Stage stage(dispatch, "index");
    bands.emplace(shapes, 0);
  }
  runtime::Stage stage(dispatch, "refine");
  if (bands) {
    ask(
        column, 64, [&](std::size_t, Point point) { return bands->inside(point); }, mask);
  } else {
    ask(
        column, 64, [&](std::size_t, Point point) { return inside(shapes, 0, point); }, mask);
  }
  return PlacedMask(std::move(mask));
}

kiln::Result<PlacedMask> box_within(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons) {
  if (kiln::Status status = on_host(points, polygons); !status) return status.error();
  const runtime::Stage stage(dispatch, "filter");
  const PointColumn& column = *points.host();
  const PolygonColumn& shapes = *polygons.host();
  Mask mask{Bitmap(column.rows(), false), column.valid};
  if (shapes.rows() == column.rows()) {
    std::vector<std::uint32_t>& words = mask.valid.words();
    for (std::size_t word = 0; word < words.size(); ++word) words[word] &= shapes.valid.words()[word];
    ask(
        column, 64, [&](std::size_t row, Point point) { return box_of(shapes, row).surrounds(point); }, mask);
  } else if (shapes.null(0)) {
    mask.valid = Bitmap(column.rows(), false);
  } else {
    const Box box = box_of(shapes, 0);
    ask(
        column, 256, [&](std::size_t, Point point) { return box.surrounds(point); }, mask);
  }
  return PlacedMask(std::move(mask));
}

}  // namespace spatial::cpu
