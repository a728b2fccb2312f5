// SPDX-License-Identifier: Apache-2.0
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "spatial/cpu/bands.hpp"
#include "spatial/cpu/grid.hpp"
#include "spatial/cpu/host_rows.hpp"
#include "spatial/cpu/variants.hpp"
#include "spatial/predicates.hpp"

namespace spatial::cpu {
namespace {

/// Limits on the points per chunk; one thread processes a chunk. Large chunks have more points per cell, small chunks
/// balance the load better.
constexpr std::size_t kMaxPointsPerPiece = 65'536;
constexpr std::size_t kMinPointsPerPiece = 1'024;

/// Rows in the order of their cells. Nearby points test the same polygons, which are then in the CPU cache.
class ByCell {
 public:
  ByCell(const PointColumn& points, std::size_t first, std::size_t last, const Grid& grid) : cells_(last - first) {
    // Adjacent cells can share a bucket: the order within a bucket does not matter.
    unsigned shift = 0;
    while ((grid.cells() >> shift) > kMaxBuckets) ++shift;
    std::vector<std::uint32_t> starts((grid.cells() >> shift) + 2, 0);
    std::size_t found = 0;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      cells_[i] = static_cast<std::uint32_t>(grid.cell(points[first + i]));
      if (cells_[i] == grid.cells()) continue;
      ++starts[(cells_[i] >> shift) + 1];
      ++found;
    }
    for (std::size_t bucket = 1; bucket < starts.size(); ++bucket) starts[bucket] += starts[bucket - 1];
    order_.resize(found);
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (cells_[i] != grid.cells()) order_[starts[cells_[i] >> shift]++] = static_cast<std::uint32_t>(i);
    }
  }

  /// The rows that are in a cell, counted from the first row of the chunk.
  const std::vector<std::uint32_t>& order() const { return order_; }
  std::size_t cell(std::size_t i) const { return cells_[i]; }

 private:
  static constexpr std::size_t kMaxBuckets = 16'384;
  std::vector<std::uint32_t> cells_;
  std::vector<std::uint32_t> order_;
};

/// Returns the sorted pairs of the points from `first` to `last`.
template <class Matches>
Pairs match_piece(const PointColumn& points, std::size_t first, std::size_t last, const Grid& grid,
                  const Matches& matches) {
  struct Run {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };
  const ByCell by_cell(points, first, last, grid);
  std::vector<Run> runs(last - first);
  std::vector<std::int32_t> polygons;
  for (const std::uint32_t i : by_cell.order()) {
    const Point point = points[first + i];
    runs[i].first = static_cast<std::uint32_t>(polygons.size());
    for (const std::int32_t polygon : grid.candidates(by_cell.cell(i))) {
      if (matches(polygon, point)) polygons.push_back(polygon);
    }
    runs[i].last = static_cast<std::uint32_t>(polygons.size());
  }
  Pairs pairs;
  pairs.reserve(polygons.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::uint32_t k = runs[i].first; k < runs[i].last; ++k) {
      pairs.push_back({static_cast<std::int32_t>(first + i), polygons[k]});
    }
  }
  return pairs;
}

/// Returns the pairs of each chunk of points, in the order of the chunks.
template <class Matches>
std::vector<Pairs> match_pieces(const PointColumn& points, const Grid& grid, const Matches& matches) {
  const std::size_t threads = static_cast<std::size_t>(tbb::this_task_arena::max_concurrency());
  const std::size_t size = std::clamp(points.rows() / (4 * threads), kMinPointsPerPiece, kMaxPointsPerPiece);
  std::vector<Pairs> pieces((points.rows() + size - 1) / size);
  tbb::parallel_for(std::size_t{0}, pieces.size(), [&](std::size_t piece) {
    const std::size_t first = piece * size;
    pieces[piece] = match_piece(points, first, std::min(first + size, points.rows()), grid, matches);
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

/// Returns the number of cells to use. A coarse grid is enough for few points, because filling a grid takes time
/// proportional to its cells.
std::size_t cells_for(const PointColumn& points, const PolygonColumn& polygons) {
  return std::min(points.rows(), 4 * polygons.rows());
}

/// Joins points and polygons. Points are processed in order and each cell lists its polygons in order, so the pairs are
/// sorted.
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

/// Polygons with many edges, prepared for many points. An entry is null for a polygon with few edges; the vector is
/// empty if there are too few points to pay for the preparation.
using Prepared = std::vector<std::unique_ptr<const EdgeBands>>;
constexpr std::int32_t kEdgesForBands = 64;
constexpr std::size_t kPointsPerPolygonForBands = 8;

Prepared prepare(runtime::Dispatch& dispatch, const PointColumn& points, const PolygonColumn& polygons) {
  if (points.rows() < kPointsPerPolygonForBands * polygons.rows()) return {};
  runtime::Stage stage(dispatch, "prepare");
  Prepared prepared(polygons.rows());
  tbb::parallel_for(std::size_t{0}, prepared.size(), [&](std::size_t row) {
    const std::int32_t vertices = polygons.offsets[polygons.rings[row + 1]] - polygons.offsets[polygons.rings[row]];
    if (vertices >= kEdgesForBands) prepared[row] = std::make_unique<const EdgeBands>(polygons, row);
  });
  return prepared;
}

}  // namespace

kiln::Result<PlacedPairs> sjoin(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons) {
  if (kiln::Status status = on_host(points, polygons); !status) return status.error();
  const PolygonColumn& column = *polygons.host();
  const Prepared prepared = prepare(dispatch, *points.host(), column);
  return join(dispatch, points, polygons, "refine", [&](std::int32_t polygon, Point point) {
    const auto row = static_cast<std::size_t>(polygon);
    const EdgeBands* bands = prepared.empty() ? nullptr : prepared[row].get();
    return bands != nullptr ? bands->inside(point) : inside(column, row, point);
  });
}

kiln::Result<PlacedPairs> box_join(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons) {
  return join(dispatch, points, polygons, "match", [](std::int32_t, Point) { return true; });
}

}  // namespace spatial::cpu
