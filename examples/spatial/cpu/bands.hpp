#pragma once

#include <vector>

#include "spatial/column.hpp"

namespace spatial::cpu {

/// A polygon made ready for many points: its edges by level bands, so that a point looks at those of its own band only.
class Bands {
 public:
  Bands(const PolygonColumn& polygons, std::size_t row);

  bool inside(Point point) const;

 private:
  struct Edge {
    Point a;
    Point b;
  };
  std::size_t band_of(double y) const;

  Box box_;
  double bands_per_unit_ = 0;
  std::vector<std::size_t> starts_;  // of the bands in `edges_`, and the end of the last
  std::vector<Edge> edges_;          // once in each band that they touch
};

}  // namespace spatial::cpu
