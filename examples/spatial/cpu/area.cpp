// SPDX-License-Identifier: Apache-2.0
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <cmath>

#include "spatial/cpu/host_rows.hpp"
#include "spatial/cpu/variants.hpp"

namespace spatial::cpu {
namespace {

using Rows = tbb::blocked_range<std::size_t>;

// Returns the area of a ring, relative to its first vertex and with a compensated sum.
double ring_area(const PolygonColumn& column, std::int32_t ring) {
  const std::int32_t first = column.offsets[ring];
  double sum = 0;
  double lost = 0;
  Point before;
  for (std::int32_t i = first + 1; i < column.offsets[ring + 1]; ++i) {
    const Point here{column.x[i] - column.x[first], column.y[i] - column.y[first]};
    const double term = before.x * here.y - here.x * before.y;
    const double next = sum + term;
    const double part = next - sum;
    lost += (sum - (next - part)) + (term - part);
    sum = next;
    before = here;
  }
  return std::fabs(sum + lost) / 2;
}

double polygon_area(const PolygonColumn& column, std::size_t row) {
  double area = 0;
  for (std::int32_t ring = column.rings[row]; ring < column.rings[row + 1]; ++ring) {
    const double of_ring = ring_area(column, ring);
    area += column.shells[static_cast<std::size_t>(ring)] ? of_ring : -of_ring;
  }
  return area;
}

double rectangle_area(const PolygonColumn& column, std::size_t row) {
  if (column.rings[row] == column.rings[row + 1]) return 0;
  const std::int32_t i = column.offsets[column.rings[row]];
  return std::fabs((column.x[i + 2] - column.x[i]) * (column.y[i + 2] - column.y[i]));
}

kiln::Result<PlacedAreas> areas(runtime::Dispatch& dispatch, const Polygons& polygons,
                                double (*area_of)(const PolygonColumn&, std::size_t)) {
  if (kiln::Status status = on_host(polygons); !status) return status.error();
  runtime::Stage stage(dispatch, "area");
  const PolygonColumn& column = *polygons.host();
  Areas areas{std::vector<double>(column.rows()), column.valid};
  tbb::parallel_for(Rows(0, column.rows(), 512), [&](const Rows& range) {
    for (std::size_t row = range.begin(); row < range.end(); ++row) {
      areas.values[row] = column.null(row) ? kNotANumber : area_of(column, row);
    }
  });
  return PlacedAreas(std::move(areas));
}

}  // namespace

kiln::Result<PlacedAreas> area(runtime::Dispatch& dispatch, const Polygons& polygons) {
  return areas(dispatch, polygons, &polygon_area);
}

kiln::Result<PlacedAreas> box_area(runtime::Dispatch& dispatch, const Polygons& polygons) {
  return areas(dispatch, polygons, &rectangle_area);
}

}  // namespace spatial::cpu
