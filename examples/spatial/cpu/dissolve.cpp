// SPDX-License-Identifier: Apache-2.0
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <vector>

#include "spatial/cpu/host_rows.hpp"
#include "spatial/cpu/variants.hpp"
#include "spatial/predicates.hpp"

namespace spatial::cpu {
namespace {

/// An edge with its polygon on the left.
struct DirectedEdge {
  std::uint32_t group = 0;
  Point from;
  Point to;
};

bool lower_left(Point a, Point b) { return a.x < b.x || (a.x == b.x && a.y < b.y); }

bool is_number(Point a, Point b) {
  return !std::isnan(a.x) && !std::isnan(a.y) && !std::isnan(b.x) && !std::isnan(b.y);
}

/// Returns how a closed ring of distinct neighbors turns at its lowest leftmost vertex: 1 left, -1 right.
int turn_of(const Point* ring, std::size_t size) {
  const std::size_t lowest = static_cast<std::size_t>(std::min_element(ring, ring + size, lower_left) - ring);
  std::size_t before = lowest;
  std::size_t after = lowest;
  do {
    before = before == 0 ? size - 1 : before - 1;
  } while (before != lowest && ring[before] == ring[lowest]);
  do {
    after = after + 1 == size ? 0 : after + 1;
  } while (after != lowest && ring[after] == ring[lowest]);
  return orientation(ring[before], ring[lowest], ring[after]);
}

/// Returns where the direction from v to c is, counterclockwise from that from v to u: 0 less than half a turn, 1 half
/// a turn, 2 more, 3 the same direction.
int turn_class(Point v, Point u, Point c) {
  const int turn = orientation(v, u, c);
  if (turn != 0) return turn > 0 ? 0 : 2;
  const bool same = (c.x > v.x) == (u.x > v.x) && (c.x < v.x) == (u.x < v.x) && (c.y > v.y) == (u.y > v.y) &&
                    (c.y < v.y) == (u.y < v.y);
  return same ? 3 : 1;
}

bool comes_before(Point v, Point u, Point c, Point d) {
  const int of_c = turn_class(v, u, c);
  const int of_d = turn_class(v, u, d);
  if (of_c != of_d) return of_c < of_d;
  return orientation(v, c, d) > 0;
}

/// The same steps as the kernels: see kernels/spatial/edges.cl, links.cl and parts.cl.
class Dissolver {
 public:
  Dissolver(const PolygonColumn& polygons, const KeyColumn& keys) : polygons_(polygons), keys_(keys) {}

  void rank_groups() {
    result.keys.values = keys_.values;
    std::vector<std::int32_t>& distinct = result.keys.values;
    tbb::parallel_sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    ranks_.resize(keys_.rows());
    result.polygons.valid = Bitmap(distinct.size(), false);
    for (std::size_t row = 0; row < ranks_.size(); ++row) {
      const auto found = std::lower_bound(distinct.begin(), distinct.end(), keys_.values[row]);
      ranks_[row] = static_cast<std::uint32_t>(found - distinct.begin());
      if (!polygons_.null(row)) result.polygons.valid.set(ranks_[row], true);
    }
  }

  /// Finds the edges that occur once in their group. Returns whether no edge occurs too often or has a NaN.
  bool find_boundary() {
    std::vector<DirectedEdge> all = all_edges();
    // NaN has no place in an order.
    if (!std::all_of(all.begin(), all.end(), [](const DirectedEdge& edge) { return is_number(edge.from, edge.to); })) {
      return false;
    }
    std::vector<std::uint32_t> order(all.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto key = [&](std::uint32_t i) {
      const DirectedEdge& edge = all[i];
      const bool swap = lower_left(edge.to, edge.from);
      const Point a = swap ? edge.to : edge.from;
      const Point b = swap ? edge.from : edge.to;
      return std::tuple(edge.group, a.x, a.y, b.x, b.y);
    };
    tbb::parallel_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const auto of_a = key(a);
      const auto of_b = key(b);
      return of_a != of_b ? of_a < of_b : a < b;
    });
    std::vector<std::uint32_t> once;
    for (std::size_t i = 0; i < order.size();) {
      std::size_t last = i + 1;
      while (last < order.size() && key(order[last]) == key(order[i])) ++last;
      if (last - i > 2) return false;
      if (last - i == 2 && all[order[i]].from == all[order[i + 1]].from) return false;
      if (last - i == 1) once.push_back(order[i]);
      i = last;
    }
    tbb::parallel_sort(once.begin(), once.end());
    for (const std::uint32_t i : once) edges_.push_back(all[i]);
    return true;
  }

  /// Links each edge to the next of its ring. Returns whether the edges close to rings.
  bool link() {
    starts_.resize(edges_.size());
    std::iota(starts_.begin(), starts_.end(), 0u);
    tbb::parallel_sort(starts_.begin(), starts_.end(), [this](std::uint32_t a, std::uint32_t b) {
      const auto of_a = start_key(edges_[a].group, edges_[a].from);
      const auto of_b = start_key(edges_[b].group, edges_[b].from);
      return of_a != of_b ? of_a < of_b : a < b;
    });
    return link_pass(false) && follow() && link_pass(true) && follow();
  }

  void write() {
    place_rings();
    find_shells();
    PolygonColumn& out = result.polygons;
    std::size_t next = 0;
    for (std::uint32_t group = 0; group < result.keys.rows(); ++group) {
      for (; next < order_.size() && rings_[order_[next]].group == group; ++next) {
        std::vector<Point> vertices = rings_[order_[next]].vertices;
        vertices.push_back(vertices.front());
        if (rings_[order_[next]].shell == order_[next]) {
          out.add_shell(vertices);
        } else {
          out.add_ring(vertices);
        }
      }
      out.rings.push_back(static_cast<std::int32_t>(out.offsets.size() - 1));
    }
  }

  Dissolved result;

 private:
  struct TracedRing {
    std::uint32_t group = 0;
    std::vector<Point> vertices;  // without the closing one
    Box box;
    bool hole = false;
    std::size_t shell = 0;  // its own number if it is a shell
  };

  static std::tuple<std::uint32_t, double, double> start_key(std::uint32_t group, Point at) {
    return {group, at.x, at.y};
  }

  std::vector<DirectedEdge> all_edges() const {
    std::vector<DirectedEdge> all;
    std::vector<Point> ring;
    for (std::size_t row = 0; row < polygons_.rows(); ++row) {
      for (std::int32_t i = polygons_.rings[row]; i < polygons_.rings[row + 1]; ++i) {
        ring.clear();
        for (std::int32_t k = polygons_.offsets[i]; k < polygons_.offsets[i + 1]; ++k) {
          ring.push_back({polygons_.x[k], polygons_.y[k]});
        }
        if (ring.size() < 2) continue;
        const int turn = turn_of(ring.data(), ring.size() - 1);
        const bool reversed = turn != 0 && (turn > 0) != polygons_.shells[static_cast<std::size_t>(i)];
        for (std::size_t k = 0; k + 1 < ring.size(); ++k) {
          if (ring[k] == ring[k + 1]) continue;
          all.push_back(reversed ? DirectedEdge{ranks_[row], ring[k + 1], ring[k]}
                                 : DirectedEdge{ranks_[row], ring[k], ring[k + 1]});
        }
      }
    }
    return all;
  }

  bool link_pass(bool second) {
    next_.assign(edges_.size(), kNone);
    tbb::parallel_for(std::size_t{0}, edges_.size(), [&](std::size_t i) {
      const DirectedEdge& edge = edges_[i];
      const auto wanted = start_key(edge.group, edge.to);
      auto at = std::lower_bound(starts_.begin(), starts_.end(), wanted, [this](std::uint32_t other, const auto& key) {
        return start_key(edges_[other].group, edges_[other].from) < key;
      });
      for (; at != starts_.end() && start_key(edges_[*at].group, edges_[*at].from) == wanted; ++at) {
        if (second && leaders_[*at] != leaders_[i]) continue;
        std::uint32_t& best = next_[i];
        if (best == kNone || comes_before(edge.to, edge.from, edges_[*at].to, edges_[best].to) == second) best = *at;
      }
    });
    return std::find(next_.begin(), next_.end(), kNone) == next_.end();
  }

  /// Finds the least edge of each ring. Returns false if two edges link to one.
  bool follow() {
    leaders_.assign(edges_.size(), kNone);
    for (std::uint32_t leader = 0; leader < edges_.size(); ++leader) {
      if (leaders_[leader] != kNone) continue;
      std::uint32_t i = leader;
      for (; leaders_[i] == kNone; i = next_[i]) leaders_[i] = leader;
      if (i != leader) return false;
    }
    return true;
  }

  void place_rings() {
    for (std::uint32_t leader = 0; leader < edges_.size(); ++leader) {
      if (leaders_[leader] != leader) continue;
      TracedRing& ring = rings_.emplace_back();
      ring.group = edges_[leader].group;
      std::uint32_t i = leader;
      do {
        ring.vertices.push_back(edges_[i].from);
        ring.box.add(edges_[i].from);
        i = next_[i];
      } while (i != leader);
      ring.hole = turn_of(ring.vertices.data(), ring.vertices.size()) <= 0;
    }
    std::stable_sort(rings_.begin(), rings_.end(),
                     [](const TracedRing& a, const TracedRing& b) { return a.group < b.group; });
  }

  static bool covers(const Box& a, const Box& b) {
    return a.min_x <= b.min_x && a.min_y <= b.min_y && a.max_x >= b.max_x && a.max_y >= b.max_y;
  }

  /// The first vertex of the hole that is not on the shell decides.
  static bool is_hole_of(const TracedRing& hole, const TracedRing& shell) {
    for (const Point vertex : hole.vertices) {
      Crossings crossings(vertex);
      for (std::size_t i = 0; i < shell.vertices.size(); ++i) {
        crossings.add(shell.vertices[i], shell.vertices[i + 1 == shell.vertices.size() ? 0 : i + 1]);
      }
      if (!crossings.on_boundary()) return crossings.inside();
    }
    return false;
  }

  void find_shells() {
    tbb::parallel_for(std::size_t{0}, rings_.size(), [this](std::size_t me) {
      TracedRing& ring = rings_[me];
      ring.shell = me;
      if (!ring.hole) return;
      const auto of_group =
          std::equal_range(rings_.begin(), rings_.end(), ring,
                           [](const TracedRing& a, const TracedRing& b) { return a.group < b.group; });
      for (auto other = of_group.first; other != of_group.second; ++other) {
        if (other->hole || !covers(other->box, ring.box)) continue;
        if (ring.shell != me && !covers(rings_[ring.shell].box, other->box)) continue;
        if (is_hole_of(ring, *other)) ring.shell = static_cast<std::size_t>(other - rings_.begin());
      }
    });
    order_.resize(rings_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
      return std::pair(rings_[a].shell, rings_[a].hole) < std::pair(rings_[b].shell, rings_[b].hole);
    });
  }

  static constexpr std::uint32_t kNone = ~0u;
  const PolygonColumn& polygons_;
  const KeyColumn& keys_;
  std::vector<std::uint32_t> ranks_;    // group of each row
  std::vector<DirectedEdge> edges_;     // of the boundary
  std::vector<std::uint32_t> starts_;   // edges by their first vertex
  std::vector<std::uint32_t> next_;     // edge that follows each
  std::vector<std::uint32_t> leaders_;  // least edge of the ring of each
  std::vector<TracedRing> rings_;
  std::vector<std::size_t> order_;  // rings in the order of the result
};

}  // namespace

kiln::Result<PlacedDissolved> dissolve(runtime::Dispatch& dispatch, const Polygons& polygons, const Keys& keys) {
  if (kiln::Status status = on_host(polygons, keys); !status) return status.error();
  Dissolver dissolver(*polygons.host(), *keys.host());
  {
    runtime::Stage stage(dispatch, "groups");
    dissolver.rank_groups();
  }
  {
    runtime::Stage stage(dispatch, "edges");
    if (!dissolver.find_boundary()) return not_a_coverage();
  }
  {
    runtime::Stage stage(dispatch, "link");
    if (!dissolver.link()) return not_a_coverage();
  }
  runtime::Stage stage(dispatch, "write");
  dissolver.write();
  return PlacedDissolved(std::move(dissolver.result));
}

}  // namespace spatial::cpu
