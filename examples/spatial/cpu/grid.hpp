#pragma once

#include <cstdint>
#include <vector>

#include "spatial/column.hpp"

namespace spatial::cpu {

/// The box of a row; of a null one too it is the box of nothing.
Box box_of(const PolygonColumn& polygons, std::size_t row);
/// Of all rows.
std::vector<Box> boxes_of(const PolygonColumn& polygons);

/// Which boxes may have a point in them: cells of equal size over all of them, each with the boxes that touch it, by
/// growing number. The boxes are to outlive it.
class Grid {
 public:
  /// With at most so many cells, as far as that is worth it.
  Grid(const std::vector<Box>& boxes, std::size_t most_cells);

  struct Range {
    const std::int32_t* first;
    const std::int32_t* last;
    const std::int32_t* begin() const { return first; }
    const std::int32_t* end() const { return last; }
  };
  std::size_t cells() const { return columns_ * rows_; }
  /// Which cell a point is in; `cells()` where it is in no box.
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
  std::vector<std::int32_t> starts_;  // of the cells in `members_`, and the end of the last
  std::vector<std::int32_t> members_;
};

}  // namespace spatial::cpu
