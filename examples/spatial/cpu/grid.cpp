// SPDX-License-Identifier: Apache-2.0
#include "spatial/cpu/grid.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>

namespace spatial::cpu {
namespace {

using Rows = tbb::blocked_range<std::size_t>;
constexpr std::size_t kGrain = 2048;

/// Returns which of `count` cells a coordinate is in. The result is monotonic in the coordinate regardless of rounding,
/// so a point in a box is in one of the box's cells. An infinite extent yields NaN, which maps all coordinates to one
/// cell.
std::size_t cell_of(double distance, double per_unit, std::size_t count) {
  const double cell = distance * per_unit;
  if (!(cell > 0)) return 0;
  return cell < static_cast<double>(count) ? static_cast<std::size_t>(cell) : count - 1;
}

double per_unit(std::size_t count, double length) {
  const double scale = count > 1 ? static_cast<double>(count) / length : 0;
  return std::isfinite(scale) ? scale : 0;
}

}  // namespace

Box box_of(const PolygonColumn& polygons, std::size_t row) {
  Box box;
  const std::int32_t last = polygons.offsets[polygons.rings[row + 1]];
  for (std::int32_t i = polygons.offsets[polygons.rings[row]]; i < last; ++i) box.add({polygons.x[i], polygons.y[i]});
  return box;
}

std::vector<Box> boxes_of(const PolygonColumn& polygons) {
  std::vector<Box> boxes(polygons.rows());
  tbb::parallel_for(Rows(0, boxes.size(), 512), [&](const Rows& range) {
    for (std::size_t row = range.begin(); row < range.end(); ++row) boxes[row] = box_of(polygons, row);
  });
  return boxes;
}

Grid::Grid(const std::vector<Box>& boxes, std::size_t max_cells) : boxes_(boxes) {
  for (const Box& box : boxes_) {
    if (box.empty()) continue;
    extent_.add({box.min_x, box.min_y});
    extent_.add({box.max_x, box.max_y});
  }
  // Boxes that are large for their number would be entered into most cells. The cells are then enlarged until an
  // average box is in at most eight.
  std::size_t cells = std::clamp<std::size_t>(max_cells, 1, std::size_t{1} << 22);
  choose_size(cells);
  const std::size_t max_entries = std::min(8 * boxes_.size(), kMaxRows);
  while (cells > 1 && entries() > max_entries) {
    cells /= 4;
    choose_size(cells);
  }
  fill();
}

void Grid::choose_size(std::size_t cells) {
  const double width = extent_.max_x - extent_.min_x;
  const double height = extent_.max_y - extent_.min_y;
  const double maximum = static_cast<double>(std::max<std::size_t>(cells, 1));
  const double wanted = std::sqrt(maximum * (width / height));
  const double columns = std::isnan(wanted) ? 1 : std::clamp(wanted, 1.0, maximum);
  columns_ = static_cast<std::size_t>(columns);
  rows_ = height > 0 ? std::max<std::size_t>(1, cells / columns_) : 1;
  columns_per_unit_ = per_unit(columns_, width);
  rows_per_unit_ = per_unit(rows_, height);
}

Grid::Cells Grid::cells_of(const Box& box) const {
  return {cell_of(box.min_x - extent_.min_x, columns_per_unit_, columns_),
          cell_of(box.max_x - extent_.min_x, columns_per_unit_, columns_),
          cell_of(box.min_y - extent_.min_y, rows_per_unit_, rows_),
          cell_of(box.max_y - extent_.min_y, rows_per_unit_, rows_)};
}

std::size_t Grid::entries() const {
  return tbb::parallel_reduce(
      Rows(0, boxes_.size(), kGrain), std::size_t{0},
      [this](const Rows& range, std::size_t sum) {
        for (std::size_t row = range.begin(); row < range.end(); ++row) {
          if (!boxes_[row].empty()) sum += cells_of(boxes_[row]).count();
        }
        return sum;
      },
      std::plus<>());
}

void Grid::fill() {
  const std::size_t cells = columns_ * rows_;
  std::vector<std::atomic<std::int32_t>> counts(cells);
  const auto each_entry = [&](const auto& visit) {
    tbb::parallel_for(Rows(0, boxes_.size(), kGrain), [&](const Rows& range) {
      for (std::size_t box = range.begin(); box < range.end(); ++box) {
        if (boxes_[box].empty()) continue;
        const Cells touched = cells_of(boxes_[box]);
        for (std::size_t row = touched.first_row; row <= touched.last_row; ++row) {
          for (std::size_t column = touched.first_column; column <= touched.last_column; ++column) {
            visit(row * columns_ + column, static_cast<std::int32_t>(box));
          }
        }
      }
    });
  };
  each_entry([&](std::size_t cell, std::int32_t) { counts[cell].fetch_add(1, std::memory_order_relaxed); });
  starts_.resize(cells + 1);
  std::int32_t sum = 0;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    starts_[cell] = sum;
    sum += counts[cell].exchange(sum, std::memory_order_relaxed);
  }
  starts_[cells] = sum;
  members_.resize(static_cast<std::size_t>(sum));
  each_entry([&](std::size_t cell, std::int32_t box) {
    members_[static_cast<std::size_t>(counts[cell].fetch_add(1, std::memory_order_relaxed))] = box;
  });
  // Threads enter their boxes in any order. Sorting each cell makes the pairs of a point sorted.
  tbb::parallel_for(Rows(0, cells, kGrain), [&](const Rows& range) {
    for (std::size_t cell = range.begin(); cell < range.end(); ++cell) {
      std::sort(members_.begin() + starts_[cell], members_.begin() + starts_[cell + 1]);
    }
  });
}

std::size_t Grid::cell(Point point) const {
  if (!extent_.covers(point)) return cells();
  return cell_of(point.y - extent_.min_y, rows_per_unit_, rows_) * columns_ +
         cell_of(point.x - extent_.min_x, columns_per_unit_, columns_);
}

}  // namespace spatial::cpu
