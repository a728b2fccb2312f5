// SPDX-License-Identifier: Apache-2.0
#include "spatial/cpu/bands.hpp"

#include <algorithm>
#include <cmath>

#include "spatial/cpu/grid.hpp"
#include "spatial/predicates.hpp"

namespace spatial::cpu {
namespace {

template <class Visit>
void each_edge(const PolygonColumn& polygons, std::size_t row, const Visit& visit) {
  for (std::int32_t ring = polygons.rings[row]; ring < polygons.rings[row + 1]; ++ring) {
    for (std::int32_t i = polygons.offsets[ring] + 1; i < polygons.offsets[ring + 1]; ++i) {
      visit(Point{polygons.x[i - 1], polygons.y[i - 1]}, Point{polygons.x[i], polygons.y[i]});
    }
  }
}

}  // namespace

EdgeBands::EdgeBands(const PolygonColumn& polygons, std::size_t row) : box_(box_of(polygons, row)) {
  std::size_t edges = 0;
  each_edge(polygons, row, [&](Point, Point) { ++edges; });
  const double scale = static_cast<double>(edges) / (box_.max_y - box_.min_y);
  bands_per_unit_ = std::isfinite(scale) ? scale : 0;
  const std::size_t bands = bands_per_unit_ > 0 ? edges : 1;
  starts_.assign(bands + 1, 0);
  const auto each_entry = [&](const auto& visit) {
    each_edge(polygons, row, [&](Point a, Point b) {
      const std::size_t last = band_of(std::max(a.y, b.y));
      for (std::size_t band = band_of(std::min(a.y, b.y)); band <= last; ++band) visit(band, a, b);
    });
  };
  each_entry([&](std::size_t band, Point, Point) { ++starts_[band + 1]; });
  for (std::size_t band = 0; band < bands; ++band) starts_[band + 1] += starts_[band];
  edges_.resize(starts_.back());
  std::vector<std::size_t> next(starts_.begin(), starts_.end() - 1);
  each_entry([&](std::size_t band, Point a, Point b) { edges_[next[band]++] = {a, b}; });
}

// The result is monotonic in y regardless of rounding, so an edge at the same height as a point is in the point's band.
std::size_t EdgeBands::band_of(double y) const {
  const double band = (y - box_.min_y) * bands_per_unit_;
  const std::size_t bands = starts_.size() - 1;
  if (!(band > 0)) return 0;
  return band < static_cast<double>(bands) ? static_cast<std::size_t>(band) : bands - 1;
}

bool EdgeBands::inside(Point point) const {
  if (!box_.surrounds(point)) return false;
  Crossings crossings(point);
  const std::size_t band = band_of(point.y);
  for (std::size_t i = starts_[band]; i < starts_[band + 1]; ++i) crossings.add(edges_[i].a, edges_[i].b);
  return crossings.inside();
}

}  // namespace spatial::cpu
