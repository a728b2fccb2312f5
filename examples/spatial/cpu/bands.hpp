// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "spatial/column.hpp"

namespace spatial::cpu {

/// A polygon prepared for many point queries. Its edges are sorted into horizontal bands, so that a query tests only
/// the edges of the point's band.
class EdgeBands {
 public:
  EdgeBands(const PolygonColumn& polygons, std::size_t row);

  bool inside(Point point) const;

 private:
  struct Edge {
    Point a;
    Point b;
  };
  std::size_t band_of(double y) const;

  Box box_;
  double bands_per_unit_ = 0;
  std::vector<std::size_t> starts_;  // start of each band in `edges_`, and the end of the last band
  std::vector<Edge> edges_;          // each edge is stored once in each band that it touches
};

}  // namespace spatial::cpu
