#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>

#include "spatial/cpu/grid.hpp"
#include "spatial/cpu/host_rows.hpp"
#include "spatial/cpu/variants.hpp"
#include "spatial/predicates.hpp"

namespace spatial::cpu {
namespace {

constexpr std::size_t kPointsPerPiece = 1024;

/// The pairs of each piece of the points, in their order.
template <class Matches>
std::vector<Pairs> match_pieces(const PointColumn& points, const Grid& grid, const Matches& matches) {
  std::vector<Pairs> pieces((points.rows() + kPointsPerPiece - 1) / kPointsPerPiece);
  tbb::parallel_for(std::size_t{0}, pieces.size(), [&](std::size_t piece) {
    const std::size_t first = piece * kPointsPerPiece;
    const std::size_t last = std::min(first + kPointsPerPiece, points.rows());
    Pairs pairs;  // on this thread's stack and not beside those of others, which write theirs
    for (std::size_t row = first; row < last; ++row) {
      const Point point = points[row];  // NaN where it is null or empty, which is nowhere
      for (const std::int32_t polygon : grid.candidates(point)) {
        if (matches(polygon, point)) pairs.push_back({static_cast<std::int32_t>(row), polygon});
      }
    }
    pieces[piece] = std::move(pairs);
  });
  return pieces;
}

Pairs joined(const std::vector<Pairs>& pieces) {
  std::vector<std::size_t> starts(pieces.size() + 1, 0);
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) starts[piece + 1] = starts[piece] + pieces[piece].size();
  Pairs pairs(starts.back());
  tbb::parallel_for(std::size_t{0}, pieces.size(), [&](std::size_t piece) {
    std::copy(pieces[piece].begin(), pieces[piece].end(), pairs.begin() + static_cast<std::ptrdiff_t>(starts[piece]));
  });
  return pairs;
}

/// With few points a coarse grid is enough: it costs as much to fill as it has cells.
std::size_t cells_for(const PointColumn& points, const PolygonColumn& polygons) {
  return std::min(points.rows(), 4 * polygons.rows());
}

/// Points go through in their order, and a cell has its polygons in theirs: the pairs come out sorted.
template <class Matches>
kiln::Result<PlacedPairs> join(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons,
                               const char* last_stage, const Matches& matches) {
  if (kiln::Status status = on_host(points, polygons); !status) return status.error();
  std::vector<Box> boxes;
  {
    runtime::Stage stage(dispatch, "bounds");
    boxes = boxes_of(*polygons.host());
  }
  std::optional<Grid> grid;
  {
    runtime::Stage stage(dispatch, "index");
    grid.emplace(boxes, cells_for(*points.host(), *polygons.host()));
  }
  std::vector<Pairs> pieces;
  {
    runtime::Stage stage(dispatch, last_stage);
    pieces = match_pieces(*points.host(), *grid, [&](std::int32_t polygon, Point point) {
      return boxes[static_cast<std::size_t>(polygon)].surrounds(point) && matches(polygon, point);
    });
  }
  runtime::Stage stage(dispatch, "collect");
  return PlacedPairs(joined(pieces));
}

}  // namespace

kiln::Result<PlacedPairs> sjoin(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons) {
  const PolygonColumn* column = polygons.host();
  return join(dispatch, points, polygons, "refine", [column](std::int32_t polygon, Point point) {
    return inside(*column, static_cast<std::size_t>(polygon), point);
  });
}

kiln::Result<PlacedPairs> box_join(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons) {
  return join(dispatch, points, polygons, "match", [](std::int32_t, Point) { return true; });
}

}  // namespace spatial::cpu
