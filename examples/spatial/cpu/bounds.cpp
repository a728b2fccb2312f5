// SPDX-License-Identifier: Apache-2.0
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include "spatial/cpu/grid.hpp"
#include "spatial/cpu/host_rows.hpp"
#include "spatial/cpu/variants.hpp"

namespace spatial::cpu {
namespace {

using Rows = tbb::blocked_range<std::size_t>;

void put(Boxes& boxes, std::size_t row, const Box& box) {
  const std::size_t rows = boxes.rows();
  boxes.sides[row] = box.min_x;
  boxes.sides[rows + row] = box.min_y;
  boxes.sides[2 * rows + row] = box.max_x;
  boxes.sides[3 * rows + row] = box.max_y;
}

constexpr Box kNullBox{kNotANumber, kNotANumber, kNotANumber, kNotANumber};

}  // namespace

kiln::Result<PlacedBoxes> bounds_of_points(runtime::Dispatch& dispatch, const Points& points) {
  if (kiln::Status status = on_host(points); !status) return status.error();
  runtime::Stage stage(dispatch, "bounds");
  const PointColumn& column = *points.host();
  Boxes boxes{std::vector<double>(4 * column.rows()), column.valid};
  tbb::parallel_for(Rows(0, column.rows(), 8192), [&](const Rows& range) {
    for (std::size_t row = range.begin(); row < range.end(); ++row) {
      Box box;
      if (column.null(row)) {
        box = kNullBox;
      } else if (!column.empty(row)) {
        box.add(column[row]);
      }
      put(boxes, row, box);
    }
  });
  return PlacedBoxes(std::move(boxes));
}

kiln::Result<PlacedBoxes> bounds_of_polygons(runtime::Dispatch& dispatch, const Polygons& polygons) {
  if (kiln::Status status = on_host(polygons); !status) return status.error();
  runtime::Stage stage(dispatch, "bounds");
  const PolygonColumn& column = *polygons.host();
  Boxes boxes{std::vector<double>(4 * column.rows()), column.valid};
  tbb::parallel_for(Rows(0, column.rows(), 512), [&](const Rows& range) {
    for (std::size_t row = range.begin(); row < range.end(); ++row) {
      put(boxes, row, column.null(row) ? kNullBox : box_of(column, row));
    }
  });
  return PlacedBoxes(std::move(boxes));
}

}  // namespace spatial::cpu
