// SPDX-License-Identifier: Apache-2.0
#include "spatial/scene.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace spatial {
namespace {

/// Splitmix64. The standard distributions yield different numbers with each standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * unit(); }

 private:
  std::uint64_t state_;
};

constexpr std::uint64_t kRowsPerNull = 128;

/// Returns a star-shaped ring around `middle` with radii from `minimum` to `maximum`.
std::vector<Point> star(Random& random, Point middle, std::size_t vertices, double minimum, double maximum) {
  std::vector<Point> ring;
  for (std::size_t i = 0; i < vertices; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(vertices);
    const double radius = random.between(minimum, maximum);
    ring.push_back({middle.x + radius * std::cos(angle), middle.y + radius * std::sin(angle)});
  }
  ring.push_back(ring.front());
  return ring;
}

}  // namespace

SyntheticData make_scene(const SceneOptions& options) {
  Random random(options.seed);
  SyntheticData scene;
  // The mean squared radius of a star is 0.58 times the square of the largest radius.
  const double area =
      options.cover * kSceneSize * kSceneSize / static_cast<double>(std::max<std::size_t>(options.polygons, 1));
  const double radius = std::min(kSceneSize / 3, std::sqrt(area / (0.58 * std::numbers::pi)));
  for (std::size_t row = 0; row < options.polygons; ++row) {
    const std::uint64_t kind = random.next() % kRowsPerNull;
    if (kind == 0) {
      scene.polygons.add_null();
      continue;
    }
    if (kind != 1) {
      const Point middle{random.between(radius, kSceneSize - radius), random.between(radius, kSceneSize - radius)};
      const std::size_t vertices = 8 + random.next() % 33;
      scene.polygons.add_ring(star(random, middle, vertices, radius / 2, radius));
      if (random.next() % 3 == 0) scene.polygons.add_ring(star(random, middle, 8, radius / 4, radius / 3));
    }
    scene.polygons.end_row();
  }
  for (std::size_t row = 0; row < options.points; ++row) {
    const std::uint64_t kind = random.next() % kRowsPerNull;
    if (kind == 0) {
      scene.points.add_null();
    } else if (kind == 1) {
      scene.points.add_empty();
    } else {
      scene.points.add({random.between(0, kSceneSize), random.between(0, kSceneSize)});
    }
  }
  return scene;
}

SyntheticData make_coverage(const SceneOptions& options) {
  Random random(options.seed);
  const auto width = static_cast<std::size_t>(std::sqrt(static_cast<double>(options.polygons)));
  const double size = kSceneSize / static_cast<double>(std::max<std::size_t>(width, 1));
  std::vector<Point> vertices;
  for (std::size_t i = 0; i < (width + 1) * (width + 1); ++i) {
    vertices.push_back({size * (static_cast<double>(i % (width + 1)) + random.between(-0.2, 0.2)),
                        size * (static_cast<double>(i / (width + 1)) + random.between(-0.2, 0.2))});
  }
  SyntheticData scene;
  for (std::size_t i = 0; i < width * width; ++i) {
    scene.keys.values.push_back(static_cast<std::int32_t>(random.next() % (width * width / 16 + 1)));
    const std::uint64_t kind = random.next() % kRowsPerNull;
    if (kind == 0) {
      scene.polygons.add_null();
      continue;
    }
    const Point* at = vertices.data() + i / width * (width + 1) + i % width;
    if (kind != 1) scene.polygons.add_ring({at[0], at[1], at[width + 2], at[width + 1], at[0]});
    scene.polygons.end_row();
  }
  return scene;
}

}  // namespace spatial
