#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spatial/column.hpp"

namespace kiln::test {

using Ring = std::vector<spatial::Point>;
/// A row of a column of polygons, with what a column does not keep: which rings are shells.
struct Shape {
  bool null = false;
  std::vector<std::vector<Ring>> parts;  ///< of each the shell first; none: empty
  bool multi = false;
};
/// A row of a column of points.
struct Spot {
  bool null = false;
  std::optional<spatial::Point> at;  ///< nothing: empty
};
struct GeneratedSet {
  std::string name;
  std::vector<Spot> points;
  std::vector<Shape> polygons;
};

/// The same numbers on every machine, which the standard's distributions do not promise.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  std::size_t below(std::size_t end) { return next() % end; }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * unit(); }
  bool chance(double probability) { return unit() < probability; }

 private:
  std::uint64_t state_;
};

/// Where coordinates come from. Each kind provokes something else.
enum class Ground {
  Lattice,    ///< small whole numbers: vertices, edges and points meet all the time
  Uniform,    ///< no two alike
  Tiny,       ///< around 1e-12
  Huge,       ///< around 1e12
  FarAway,    ///< small shapes 1e12 from the origin, where doubles are an eighth of a thousandth apart
  Scales,     ///< from 1e-12 to 1e12 in one shape
  Rectangles  ///< of whole numbers, and nothing else
};
inline constexpr std::size_t kGrounds = 7;
inline const char* to_string(Ground ground) {
  constexpr const char* kNames[kGrounds] = {"lattice", "uniform", "tiny", "huge", "far away", "scales", "rectangles"};
  return kNames[static_cast<std::size_t>(ground)];
}

/// Makes sets of one ground.
class GeometryMaker {
 public:
  GeometryMaker(std::uint64_t seed, Ground ground) : dice_(seed), ground_(ground) {}

  GeneratedSet set(std::size_t points, std::size_t polygons) {
    GeneratedSet made;
    for (std::size_t i = 0; i < polygons; ++i) made.polygons.push_back(shape());
    for (std::size_t i = 0; i < points; ++i) made.points.push_back(spot(made.polygons));
    return made;
  }

 private:
  spatial::Point place() {
    switch (ground_) {
      case Ground::Lattice:
      case Ground::Rectangles: return {static_cast<double>(dice_.below(9)), static_cast<double>(dice_.below(9))};
      case Ground::Uniform: return {dice_.between(-1, 1), dice_.between(-1, 1)};
      case Ground::Tiny: return {dice_.between(-1e-12, 1e-12), dice_.between(-1e-12, 1e-12)};
      case Ground::Huge: return {dice_.between(-1e12, 1e12), dice_.between(-1e12, 1e12)};
      case Ground::FarAway:
        return {1e12 + static_cast<double>(dice_.below(64)) * 0x1p-13,
                -1e12 + static_cast<double>(dice_.below(64)) * 0x1p-13};
      case Ground::Scales: return {at_any_scale(), at_any_scale()};
    }
    return {};
  }
  double at_any_scale() {
    constexpr double kScales[] = {1e-12, 1e-6, 1, 1e6, 1e12};
    return kScales[dice_.below(5)] * static_cast<double>(static_cast<int>(dice_.below(17)) - 8);
  }

  Ring closed(Ring ring) {
    ring.push_back(ring.front());
    return ring;
  }
  /// By their angle around their middle: a ring that does not cross itself, though it may touch itself.
  Ring star(std::size_t vertices) {
    Ring ring;
    for (std::size_t i = 0; i < vertices; ++i) ring.push_back(place());
    spatial::Point middle;
    for (const spatial::Point& vertex : ring) {
      middle.x += vertex.x / static_cast<double>(vertices);
      middle.y += vertex.y / static_cast<double>(vertices);
    }
    std::sort(ring.begin(), ring.end(), [middle](const spatial::Point& a, const spatial::Point& b) {
      return std::atan2(a.y - middle.y, a.x - middle.x) < std::atan2(b.y - middle.y, b.x - middle.x);
    });
    if (dice_.chance(0.5)) std::reverse(ring.begin(), ring.end());
    return closed(ring);
  }
  Ring rectangle() {
    const spatial::Point a = place();
    const spatial::Point b = place();
    Ring ring = {{a.x, a.y}, {b.x, a.y}, {b.x, b.y}, {a.x, b.y}};
    if (dice_.chance(0.5)) std::reverse(ring.begin(), ring.end());
    return closed(ring);
  }
  /// There and back again: no area.
  Ring spike() {
    const spatial::Point a = place();
    const spatial::Point b = place();
    return dice_.chance(0.5) ? Ring{a, b, a, b, a} : Ring{a, b, b, a};
  }
  /// A ring with a part of no width, and a vertex that is there twice.
  Ring with_spike() {
    Ring ring = star(3 + dice_.below(6));
    const std::size_t at = dice_.below(ring.size() - 1);
    const spatial::Point root = ring[at];
    ring.insert(ring.begin() + static_cast<std::ptrdiff_t>(at), {root, place(), root});
    ring.back() = ring.front();
    return ring;
  }
  /// A smaller one of the same form, within it where it is convex enough.
  Ring shrunk(const Ring& ring) {
    spatial::Point middle;
    for (std::size_t i = 1; i < ring.size(); ++i) {
      middle.x += ring[i].x / static_cast<double>(ring.size() - 1);
      middle.y += ring[i].y / static_cast<double>(ring.size() - 1);
    }
    Ring hole;
    for (const spatial::Point& vertex : ring) {
      hole.push_back({middle.x + (vertex.x - middle.x) / 2, middle.y + (vertex.y - middle.y) / 2});
    }
    return hole;
  }

  /// A hole that leaves the box of its shell is no hole, and the one thing that GEOS sees otherwise: docs/spatial.md.
  Ring kept_within(const Ring& shell, Ring hole) {
    spatial::Box box;
    for (const spatial::Point& vertex : shell) box.add(vertex);
    for (spatial::Point& vertex : hole) {
      vertex = {std::clamp(vertex.x, box.min_x, box.max_x), std::clamp(vertex.y, box.min_y, box.max_y)};
    }
    return hole;
  }

  Shape shape() {
    Shape made;
    if (dice_.chance(0.08)) {
      made.null = true;
      return made;
    }
    made.multi = ground_ != Ground::Rectangles && dice_.chance(0.2);
    if (dice_.chance(0.08)) return made;
    if (ground_ == Ground::Rectangles) {
      made.parts = {{rectangle()}};
      return made;
    }
    for (std::size_t part = made.multi ? 1 + dice_.below(3) : 1; part > 0; --part) made.parts.push_back(polygon());
    return made;
  }
  std::vector<Ring> polygon() {
    const std::size_t kind = dice_.below(10);
    if (kind == 0) return {spike()};
    if (kind <= 2) return {with_spike()};
    if (kind == 3) return {rectangle()};
    std::vector<Ring> rings = {star(3 + dice_.below(12))};
    if (dice_.chance(0.4)) rings.push_back(shrunk(rings[0]));
    if (dice_.chance(0.1)) rings.push_back(kept_within(rings[0], star(3)));  // it may lie across the shell
    return rings;
  }

  Spot spot(const std::vector<Shape>& shapes) {
    if (dice_.chance(0.05)) return {true, {}};
    if (dice_.chance(0.05)) return {false, {}};
    const Shape& shape = shapes[dice_.below(shapes.size())];
    if (shape.parts.empty() || dice_.chance(0.3)) return {false, place()};
    const std::vector<Ring>& part = shape.parts[dice_.below(shape.parts.size())];
    const Ring& ring = part[dice_.below(part.size())];
    const std::size_t edge = dice_.below(ring.size() - 1);
    return {false, near(ring, edge)};
  }
  /// On a vertex, on an edge as nearly as doubles allow, a step of a double beside it, level with a vertex, or in the
  /// middle of three.
  spatial::Point near(const Ring& ring, std::size_t edge) {
    const spatial::Point a = ring[edge];
    const spatial::Point b = ring[edge + 1];
    const double share = dice_.chance(0.3) ? 0.5 : dice_.unit();
    spatial::Point p{a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)};
    switch (dice_.below(5)) {
      case 0: return a;
      case 1: return p;
      case 2:
        if (p.x != 0) p.x = std::nextafter(p.x, dice_.chance(0.5) ? HUGE_VAL : -HUGE_VAL);
        return p;
      case 3: return {place().x, a.y};
      default: {
        const spatial::Point c = ring[dice_.below(ring.size())];
        return {a.x / 3 + b.x / 3 + c.x / 3, a.y / 3 + b.y / 3 + c.y / 3};
      }
    }
  }

  Dice dice_;
  const Ground ground_;
};

/// How many sets the comparisons go through.
inline constexpr std::uint64_t kGeneratedSets = 210;

/// The set of a number: the grounds take turns, and sizes go from nothing to some dozens.
inline GeneratedSet generated_set(std::uint64_t number) {
  const auto ground = static_cast<Ground>(number % kGrounds);
  Dice dice(number * 7919 + 1);
  const std::size_t polygons = 1 + dice.below(20);
  const std::size_t points = number < kGrounds ? number : 20 + dice.below(60);
  GeneratedSet made = GeometryMaker(number, ground).set(points, polygons);
  made.name = std::string(to_string(ground)) + " " + std::to_string(number);
  return made;
}

}  // namespace kiln::test
