// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <limits>
#include <optional>
#include <utility>

#include "spatial/device/pipeline.hpp"

namespace spatial::device {
namespace {

constexpr unsigned kKeyBits = 32;
constexpr std::size_t kWord = sizeof(std::uint32_t);

unsigned width_of(std::uint32_t numbers) {
  return numbers < 2 ? 1 : static_cast<unsigned>(std::bit_width(numbers - 1));
}
// Returns the number of bits of a hash that has as many values as there are items, in whole passes of a sort.
std::uint32_t hash_bits(std::uint32_t items) { return (width_of(items) + 7) / 8 * 8; }
std::size_t bitmap_words(std::size_t bits) { return (bits + 31) / 32; }

// One dissolve: the buffers that its stages pass to each other.
class Dissolving {
 public:
  Dissolving(runtime::Dispatch& dispatch, const DevicePolygons& polygons, const DeviceKeys& keys)
      : dispatch_(dispatch), kit_(*polygons.kit()), polygons_(polygons), groups_(keys),
        rows_(static_cast<std::int32_t>(polygons.rows())), rings_(static_cast<std::uint32_t>(polygons.ring_count())),
        vertices_(static_cast<std::uint32_t>(polygons.vertex_count())) {}

  kiln::Result<DeviceDissolved> run() {
    kiln::Status done;
    if (rows_ != 0) done = rank_groups();
    if (done && vertices_ != 0) done = find_boundary();
    if (done && edge_count_ != 0) done = link();
    if (done && edge_count_ != 0) done = trace();
    if (done && ring_count_ != 0) done = nest();
    if (!done) return std::move(done).error();
    return write();
  }

 private:
  kiln::Status allocate(std::size_t bytes, std::optional<kiln::Buffer>& to) const { return kit_.allocate(bytes, to); }

  // Sorts keys by their lowest bits.
  kiln::Status sort(std::optional<kiln::Buffer>& keys, std::uint32_t count, unsigned bits) {
    std::optional<kiln::Buffer> spare;
    kiln::Status done = allocate(keys->size(), spare);
    if (done) done = kit_.primitives().sort(*keys, *spare, count, bits);
    return done;
  }

  // Reads the one number that determines how much to allocate. It is too large if a kernel found an error.
  kiln::Status read_size(std::uint32_t& size) {
    const runtime::Transfer transfer(dispatch_.runtime(), kiln::Purpose::AllocationSize);
    if (kiln::Status read = kit_.stream().download(&size, *size_, sizeof size); !read) return read;
    if (size <= static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max())) return {};
    return not_a_coverage();
  }

  // Ranks the distinct keys, and gives each row the rank of its key.
  kiln::Status rank_groups() {
    const runtime::Stage stage(dispatch_, "groups", &kit_.stream());
    const auto rows = static_cast<std::uint32_t>(rows_);
    std::optional<kiln::Buffer> keys;
    std::optional<kiln::Buffer> heads;
    kiln::Status done = allocate(rows * sizeof(std::uint64_t), keys);
    if (done) done = allocate((std::size_t{rows} + 1) * kWord, heads);
    if (done) done = allocate(rows * kWord, ranks_);
    if (done) done = allocate(kWord, size_);
    if (done) done = allocate(kWord, status_);
    if (done) done = kit_.launch("group_keys", rows, rows_, groups_.values, *keys, *status_);
    if (done) done = sort(keys, rows, kKeyBits);
    if (done) done = kit_.primitives().unique(*keys, rows, *heads, *size_);
    if (done) done = kit_.launch("group_ranks", rows, rows_, *keys, *size_, *heads, *ranks_);
    if (done) done = read_size(group_count_);
    if (done) done = allocate(group_count_ * kWord, group_keys_);
    if (done) done = allocate(bitmap_words(group_count_) * kWord, group_valid_);
    if (done) {
      done = kit_.launch("group_rows", bitmap_words(group_count_), static_cast<std::int32_t>(group_count_), *keys,
                         *heads, *polygons_.at.valid, *group_keys_, *group_valid_);
    }
    return done;
  }

  // Finds the edges that occur once in their group.
  kiln::Status find_boundary() {
    const runtime::Stage stage(dispatch_, "edges", &kit_.stream());
    const auto& at = polygons_.at;
    const std::uint32_t bits = hash_bits(vertices_);
    std::optional<kiln::Buffer> reversed;
    std::optional<kiln::Buffer> keys;
    std::optional<kiln::Buffer> flags;
    kiln::Status done = allocate(rings_, reversed);
    if (done) done = allocate(vertices_ * sizeof(std::uint64_t), keys);
    if (done) done = allocate(vertices_, flags);
    if (done) done = allocate(vertices_ * kWord, sides_);
    if (done) done = allocate(vertices_ * kWord, edges_);
    if (done) done = kit_.launch("ring_sides", rings_, rings_, at.offsets, at.shells, at.x, at.y, *reversed);
    if (done) {
      done = kit_.launch("edge_keys", vertices_, vertices_, bits, rows_, at.rings, rings_, at.offsets, *reversed,
                         *ranks_, at.x, at.y, *sides_, *keys);
    }
    if (done) done = sort(keys, vertices_, bits);
    if (done) {
      done = kit_.launch("edge_cancel", vertices_, vertices_, bits, *keys, *sides_, at.x, at.y, *flags, *status_);
    }
    if (done) done = kit_.primitives().compact(*flags, vertices_, *edges_, *size_);
    if (done) done = kit_.launch("dissolve_check", 1, *status_, *size_);
    if (done) done = read_size(edge_count_);
    if (done) done = allocate(edge_count_ * sizeof(std::uint64_t), starts_);
    return done;
  }

  // Links the edges, and computes for each the least edge of its ring and how far ahead that is, by pointer jumping.
  kiln::Status link_pass(std::int32_t second) {
    const auto& at = polygons_.at;
    kiln::Status done = kit_.launch("link_edges", edge_count_, edge_count_, hash_bits(edge_count_), second, *edges_,
                                    *sides_, at.x, at.y, *starts_, *labels_, *next_, *status_);
    if (done) done = kit_.launch("jump_begin", edge_count_, edge_count_, *next_, *back_, *state_);
    for (std::uint64_t span = 1; done && span < edge_count_; span *= 4) {
      done = kit_.launch("jump_ahead", edge_count_, edge_count_, static_cast<std::uint32_t>(span), *state_, *further_);
      std::swap(state_, further_);
    }
    if (done) {
      done =
          kit_.launch("ring_labels", edge_count_, edge_count_, *next_, *back_, *state_, *labels_, *leading_, *status_);
    }
    return done;
  }

  // Links each edge to the next of its ring.
  kiln::Status link() {
    const runtime::Stage stage(dispatch_, "link", &kit_.stream());
    const auto& at = polygons_.at;
    const std::uint32_t bits = hash_bits(edge_count_);
    kiln::Status done = allocate(edge_count_ * kWord, labels_);
    if (done) done = allocate(edge_count_, leading_);
    if (done) done = allocate(edge_count_ * kWord, next_);
    if (done) done = allocate(edge_count_ * kWord, back_);
    if (done) done = allocate(std::size_t{3} * edge_count_ * kWord, state_);
    if (done) done = allocate(std::size_t{3} * edge_count_ * kWord, further_);
    if (done) {
      done = kit_.launch("boundary_keys", edge_count_, edge_count_, bits, *edges_, *sides_, at.x, at.y, *starts_);
    }
    if (done) done = sort(starts_, edge_count_, bits);
    if (done) done = link_pass(0);
    if (done) done = link_pass(1);
    return done;
  }

  // Writes the vertices of each ring consecutively, in the order of groups.
  kiln::Status trace() {
    const runtime::Stage stage(dispatch_, "rings", &kit_.stream());
    const auto& at = polygons_.at;
    std::optional<kiln::Buffer> leaders;
    kiln::Status done = allocate(edge_count_ * kWord, leaders);
    if (done) done = allocate(edge_count_ * sizeof(double), ring_x_);
    if (done) done = allocate(edge_count_ * sizeof(double), ring_y_);
    if (done) done = kit_.primitives().compact(*leading_, edge_count_, *leaders, *size_);
    if (done) done = kit_.launch("dissolve_check", 1, *status_, *size_);
    if (done) done = read_size(ring_count_);
    if (done) done = allocate(ring_count_ * sizeof(std::uint64_t), ring_groups_);
    if (done) done = allocate((std::size_t{ring_count_} + 1) * kWord, ring_starts_);
    if (done) {
      done = kit_.launch("ring_keys", ring_count_, ring_count_, *leaders, *edges_, *sides_, *ring_groups_);
    }
    if (done) done = sort(ring_groups_, ring_count_, width_of(group_count_));
    // The links of edges to their predecessors are not used any more.
    if (done) {
      done = kit_.launch("ring_lengths", ring_count_, ring_count_, edge_count_, *ring_groups_, *next_, *state_, *back_,
                         *ring_starts_);
    }
    if (done) done = kit_.primitives().exclusive_scan(*ring_starts_, ring_count_, *ring_starts_, *size_);
    if (done) {
      done = kit_.launch("place_edges", edge_count_, edge_count_, *edges_, *sides_, at.x, at.y, *state_, *back_,
                         *ring_starts_, *ring_x_, *ring_y_);
    }
    return done;
  }

  kiln::Status reduce(Reduction reduction, const kiln::Buffer& values, const kiln::Buffer& results) {
    return kit_.primitives().segmented_reduce(reduction, values, *ring_starts_, ring_count_, results);
  }

  // Finds the shells, and the shell of each hole.
  kiln::Status nest() {
    const runtime::Stage stage(dispatch_, "nest", &kit_.stream());
    std::optional<kiln::Buffer> min_x;
    std::optional<kiln::Buffer> min_y;
    std::optional<kiln::Buffer> max_x;
    std::optional<kiln::Buffer> max_y;
    std::optional<kiln::Buffer> heights;
    std::optional<kiln::Buffer> lowest;
    std::optional<kiln::Buffer> shells;
    kiln::Status done = allocate(edge_count_ * sizeof(double), heights);
    if (done) done = allocate(ring_count_, shells);
    if (done) done = allocate(ring_count_ * sizeof(std::uint64_t), order_);
    for (auto* side : {&min_x, &min_y, &max_x, &max_y, &lowest}) {
      if (done) done = allocate(ring_count_ * sizeof(double), *side);
    }
    if (done) done = reduce(Reduction::Minimum, *ring_x_, *min_x);
    if (done) done = reduce(Reduction::Minimum, *ring_y_, *min_y);
    if (done) done = reduce(Reduction::Maximum, *ring_x_, *max_x);
    if (done) done = reduce(Reduction::Maximum, *ring_y_, *max_y);
    if (done) {
      done = kit_.launch("leftmost_heights", edge_count_, edge_count_, ring_count_, *ring_starts_, *ring_x_, *ring_y_,
                         *min_x, *heights);
    }
    if (done) done = reduce(Reduction::Minimum, *heights, *lowest);
    if (done) {
      done = kit_.launch("ring_turns", edge_count_, edge_count_, ring_count_, *ring_starts_, *ring_x_, *ring_y_, *min_x,
                         *lowest, *shells);
    }
    if (done) {
      done = kit_.launch("ring_shells", ring_count_, ring_count_, *ring_groups_, *ring_starts_, *ring_x_, *ring_y_,
                         *min_x, *min_y, *max_x, *max_y, *shells, *order_);
    }
    if (done) done = sort(order_, ring_count_, width_of(ring_count_) + 1);
    return done;
  }

  // Writes the polygons.
  kiln::Result<DeviceDissolved> write() {
    const runtime::Stage stage(dispatch_, "write", &kit_.stream());
    std::optional<kiln::Buffer> rings;
    std::optional<kiln::Buffer> offsets;
    std::optional<kiln::Buffer> x;
    std::optional<kiln::Buffer> y;
    std::optional<kiln::Buffer> shells;
    std::optional<kiln::Buffer> places;
    const std::size_t vertices = std::size_t{edge_count_} + ring_count_;
    kiln::Status done = allocate((std::size_t{group_count_} + 1) * kWord, rings);
    if (done) done = allocate((std::size_t{ring_count_} + 1) * kWord, offsets);
    if (done) done = allocate(vertices * sizeof(double), x);
    if (done) done = allocate(vertices * sizeof(double), y);
    if (done) done = allocate(bitmap_words(ring_count_) * kWord, shells);
    if (done) done = allocate(ring_count_ * kWord, places);
    // Nothing was allocated by stages that had nothing to do.
    for (auto* buffer : {&group_keys_, &group_valid_, &ring_groups_, &size_}) {
      if (done && !*buffer) done = allocate(kWord, *buffer);
    }
    if (done && ring_count_ != 0) {
      done = kit_.launch("ring_sizes", ring_count_, ring_count_, *order_, *ring_starts_, *places, *offsets);
      if (done) done = kit_.launch("shell_bits", bitmap_words(ring_count_), ring_count_, *order_, *shells);
    }
    if (done) done = kit_.primitives().exclusive_scan(*offsets, ring_count_, *offsets, *size_);
    if (done) {
      done =
          kit_.launch("group_rings", std::size_t{group_count_} + 1, group_count_, ring_count_, *ring_groups_, *rings);
    }
    if (done && ring_count_ != 0) {
      done = kit_.launch("write_rings", edge_count_, edge_count_, ring_count_, *ring_starts_, *places, *offsets,
                         *ring_x_, *ring_y_, *x, *y);
    }
    if (!done) return std::move(done).error();
    DevicePolygons polygons(polygons_.kit(), group_count_,
                            {std::make_shared<const kiln::Buffer>(*std::move(group_valid_)), *std::move(rings),
                             *std::move(offsets), *std::move(x), *std::move(y), *std::move(shells)},
                            false);
    return DeviceDissolved(DeviceKeys(polygons_.kit(), group_count_, *std::move(group_keys_)), std::move(polygons));
  }

  runtime::Dispatch& dispatch_;
  DeviceContext& kit_;
  const DevicePolygons& polygons_;
  const DeviceKeys& groups_;
  const std::int32_t rows_;
  const std::uint32_t rings_;     // of the input
  const std::uint32_t vertices_;  // of the input
  std::uint32_t group_count_ = 0;
  std::uint32_t edge_count_ = 0;  // edges of the boundary, which are the vertices of the result
  std::uint32_t ring_count_ = 0;  // rings of the result

  std::optional<kiln::Buffer> size_;         // the number that read_size reads
  std::optional<kiln::Buffer> status_;       // not zero if the input is not a coverage
  std::optional<kiln::Buffer> ranks_;        // group of each row
  std::optional<kiln::Buffer> group_keys_;   // key of each group
  std::optional<kiln::Buffer> group_valid_;  // groups that are not null
  std::optional<kiln::Buffer> sides_;        // group and direction of each edge of the input
  std::optional<kiln::Buffer> edges_;        // edges of the boundary
  std::optional<kiln::Buffer> starts_;       // edges of the boundary by the hash of their first vertex
  std::optional<kiln::Buffer> labels_;       // least edge of the ring of each edge
  std::optional<kiln::Buffer> leading_;      // flags of least edges
  std::optional<kiln::Buffer> next_;         // links
  std::optional<kiln::Buffer> back_;         // links to the edge before; then the ring of its least edge
  std::optional<kiln::Buffer> state_;        // state of the pointer jumping, and its next state
  std::optional<kiln::Buffer> further_;
  std::optional<kiln::Buffer> ring_groups_;  // least edge and group of each ring
  std::optional<kiln::Buffer> ring_starts_;  // first vertex of each ring
  std::optional<kiln::Buffer> ring_x_;
  std::optional<kiln::Buffer> ring_y_;
  std::optional<kiln::Buffer> order_;  // rings in the order of the result
};

}  // namespace

kiln::Result<DeviceDissolved> dissolve(runtime::Dispatch& dispatch, const DevicePolygons& polygons,
                                       const DeviceKeys& keys) {
  return Dissolving(dispatch, polygons, keys).run();
}

}  // namespace spatial::device
