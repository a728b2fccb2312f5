// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "spatial/column.hpp"

namespace spatial::cpu {

/// Returns the box of a row; the empty box for a null row.
Box box_of(const PolygonColumn& polygons, std::size_t row);
/// Returns the boxes of all rows.
std::vector<Box> boxes_of(const PolygonColumn& polygons);

/// A uniform grid over boxes, which finds the boxes that can contain a point. Each cell lists the boxes that touch it,
/// by increasing number. The boxes must outlive the grid.
class Grid {
 public:
  /// Builds a grid with at most `max_cells` cells; fewer if the boxes are large.
  Grid(const std::vector<Box>& boxes, std::size_t max_cells);

  struct Range {
    const std::int32_t* first;
    const std::int32_t* last;
    const std::int32_t* begin() const { return first; }
    const std::int32_t* end() const { return last; }
  };
  std::size_t cells() const { return columns_ * rows_; }
  /// Returns the cell that a point is in, or `cells()` if it is outside all cells.
  std::size_t cell(Point point) const;
  Range candidates(std::size_t cell) const {
    return {members_.data() + starts_[cell], members_.data() + starts_[cell + 1]};
  }

 private:
  struct Cells {
    std::size_t first_column;
    std::size_t last_column;
    std::size_t first_row;
    std::size_t last_row;
    std::size_t count() const { return (last_column - first_column + 1) * (last_row - first_row + 1); }
  };
  void choose_size(std::size_t cells);
  Cells cells_of(const Box& box) const;
  std::size_t entries() const;
  void fill();

  const std::vector<Box>& boxes_;
  Box extent_;
  std::size_t columns_ = 1;
  std::size_t rows_ = 1;
  double columns_per_unit_ = 0;
  double rows_per_unit_ = 0;
  std::vector<std::int32_t> starts_;  // start of each cell in `members_`, and the end of the last cell
  std::vector<std::int32_t> members_;
};

}  // namespace spatial::cpu
