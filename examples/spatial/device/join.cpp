// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "spatial/device/pipeline.hpp"

namespace spatial::device {
namespace {

constexpr int kFinestOfAll = 10;  // the finest grid has at most 2^10 by 2^10 cells
constexpr std::uint32_t kMaxPairs = std::numeric_limits<std::int32_t>::max();

// Returns the level of the finest grid: about four cells per polygon, and a power of two in each direction.
int finest_grid(std::size_t polygons) {
  const int bits = static_cast<int>(std::bit_width(polygons));
  return std::min((bits + 1) / 2 + 1, kFinestOfAll);
}

// Returns the number of cells of all grids, from the finest to the one with a single cell.
std::int32_t cells_of(int finest) {
  std::int32_t cells = 0;
  for (int level = 0; level <= finest; ++level) cells += 1 << (2 * level);
  return cells;
}

// Returns the number of bits in the row numbers of a column of this size.
int bits_of(std::size_t rows) { return rows < 2 ? 1 : static_cast<int>(std::bit_width(rows - 1)); }

// One join: the buffers that its stages pass to each other.
class Join {
 public:
  Join(runtime::Dispatch& dispatch, const DevicePoints& points, const DevicePolygons& polygons)
      : dispatch_(dispatch), kit_(*points.kit()), points_(points), polygons_(polygons),
        point_rows_(static_cast<std::int32_t>(points.rows())),
        polygon_rows_(static_cast<std::int32_t>(polygons.rows())), finest_(finest_grid(polygons.rows())),
        cells_(cells_of(finest_)), bits_(bits_of(polygons.rows())) {}

  kiln::Result<DevicePairs> run(Refinement refinement) {
    kiln::Status done;
    if (point_rows_ != 0) {
      done = prepare();
      if (done) done = index();
      if (done) done = find_candidates();
      if (done && count_ != 0 && refinement == Refinement::Exact) done = refine();
    }
    if (!done) return std::move(done).error();
    return sorted();
  }

 private:
  // Allocates all buffers whose size is known before any computation.
  kiln::Status prepare() {
    kiln::Status done = kit_.allocate(4 * sizeof(double) * polygons_.rows(), sides_);
    if (done) done = kit_.allocate(4 * sizeof(double), grid_);
    if (done) done = kit_.allocate((static_cast<std::size_t>(cells_) + 1) * sizeof(std::uint32_t), ends_);
    if (done) done = kit_.allocate((points_.rows() + 1) * sizeof(std::uint32_t), offsets_);
    if (done) done = kit_.allocate(sizeof(std::uint32_t), size_);
    return done;
  }

  // Reads the one number that determines how much to allocate.
  kiln::Status read_size(const char* of_what, std::uint32_t& size) {
    const runtime::Transfer transfer(dispatch_.runtime(), kiln::Purpose::AllocationSize);
    if (kiln::Status read = kit_.stream().download(&size, *size_, sizeof size); !read) return read;
    if (size <= kMaxPairs) return {};
    return kiln::Error{kiln::Code::Unsupported,
                       std::string("the join has more than 2147483647 ") + of_what + "; join the points in parts",
                       {}};
  }

  // Computes which polygons are in which cells.
  kiln::Status index() {
    kiln::Status done;
    {
      const runtime::Stage stage(dispatch_, "bounds", &kit_.stream());
      done = launch_bounds(polygons_, *sides_);
    }
    const runtime::Stage stage(dispatch_, "index", &kit_.stream());
    const auto rows = polygons_.rows();
    const auto cells = static_cast<std::uint32_t>(cells_);
    if (done) done = kit_.launch("grid_begin", cells, polygon_rows_, *sides_, finest_, *grid_, cells_, *ends_);
    if (done) done = kit_.launch("grid_count", rows, polygon_rows_, *sides_, finest_, *grid_, *ends_);
    if (done) done = kit_.primitives().exclusive_scan(*ends_, cells, *ends_, *size_);
    std::uint32_t entries = 0;
    if (done) done = read_size("entries of its grid", entries);
    if (done) done = kit_.allocate(entries * sizeof(std::int32_t), members_);
    if (done) done = kit_.launch("grid_fill", rows, polygon_rows_, *sides_, finest_, *grid_, *ends_, *members_);
    return done;
  }

  // Finds the pairs whose box surrounds the point, as keys.
  kiln::Status find_candidates() {
    const runtime::Stage stage(dispatch_, "candidates", &kit_.stream());
    const auto rows = points_.rows();
    kiln::Status done = kit_.launch("candidates_count", rows, point_rows_, *points_.valid, points_.x, points_.y,
                                    polygon_rows_, *sides_, finest_, *grid_, *ends_, *members_, *offsets_);
    if (done) {
      done = kit_.primitives().exclusive_scan(*offsets_, static_cast<std::uint32_t>(rows), *offsets_, *size_);
    }
    if (done) done = read_size("candidates", count_);
    if (done) done = kit_.allocate(count_ * sizeof(std::uint64_t), keys_);
    if (done && count_ != 0) {
      done = kit_.launch("candidates_write", rows, point_rows_, *points_.valid, points_.x, points_.y, polygon_rows_,
                         *sides_, finest_, *grid_, *ends_, *members_, *offsets_, bits_, *keys_);
    }
    return done;
  }

  // Keeps the keys whose polygon contains the point.
  kiln::Status refine() {
    std::optional<kiln::Buffer> flags;
    std::optional<kiln::Buffer> chosen;
    kiln::Status done = kit_.allocate(count_, flags);
    if (done) done = kit_.allocate(count_ * sizeof(std::uint32_t), chosen);
    const auto& at = polygons_.at;
    if (done) {
      const runtime::Stage stage(dispatch_, "refine", &kit_.stream());
      done = kit_.launch("refine_candidates", count_, count_, *keys_, bits_, points_.x, points_.y, at.rings, at.offsets,
                         at.x, at.y, *flags);
    }
    if (!done) return done;
    const runtime::Stage stage(dispatch_, "compaction", &kit_.stream());
    done = kit_.primitives().compact(*flags, count_, *chosen, *size_);
    if (done) done = read_size("pairs", count_);
    std::optional<kiln::Buffer> left;
    if (done) done = kit_.allocate(count_ * sizeof(std::uint64_t), left);
    if (done) done = kit_.launch("gather_keys", count_, count_, *chosen, *keys_, *left);
    if (done) std::swap(keys_, left);
    return done;
  }

  kiln::Result<DevicePairs> sorted() {
    std::optional<kiln::Buffer> pairs;
    std::optional<kiln::Buffer> spare;
    kiln::Status done = kit_.allocate(count_ * sizeof(Pair), pairs);
    if (done && count_ != 0) {
      const runtime::Stage stage(dispatch_, "sort", &kit_.stream());
      done = kit_.allocate(count_ * sizeof(std::uint64_t), spare);
      const int bits = bits_ + bits_of(points_.rows());
      if (done) done = kit_.primitives().sort(*keys_, *spare, count_, static_cast<unsigned>(bits));
      if (done) done = kit_.launch("pairs_of_keys", count_, count_, *keys_, bits_, *pairs);
    }
    if (!done) return std::move(done).error();
    return DevicePairs(points_.kit(), count_, *std::move(pairs));
  }

  runtime::Dispatch& dispatch_;
  DeviceContext& kit_;
  const DevicePoints& points_;
  const DevicePolygons& polygons_;
  const std::int32_t point_rows_;
  const std::int32_t polygon_rows_;
  const std::int32_t finest_;
  const std::int32_t cells_;
  const std::int32_t bits_;  // bits of a polygon's row in a key; the point's row is in the bits above

  std::optional<kiln::Buffer> sides_;    // boxes of the polygons
  std::optional<kiln::Buffer> grid_;     // position and size of the grids
  std::optional<kiln::Buffer> ends_;     // number of members of each cell, then the end of each cell in members_
  std::optional<kiln::Buffer> members_;  // polygons of each cell
  std::optional<kiln::Buffer> offsets_;  // number of candidates of each point, then their start
  std::optional<kiln::Buffer> size_;     // the number that read_size reads
  std::optional<kiln::Buffer> keys_;     // pairs as keys
  std::uint32_t count_ = 0;              // number of keys
};

}  // namespace

kiln::Result<DevicePairs> join(runtime::Dispatch& dispatch, const DevicePoints& points, const DevicePolygons& polygons,
                               Refinement refinement) {
  return Join(dispatch, points, polygons).run(refinement);
}

}  // namespace spatial::device
