// SPDX-License-Identifier: Apache-2.0
#include "spatial/svg_plot.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "spatial/scene.hpp"

namespace spatial {
namespace {

// The color-blind safe palette of Okabe and Ito.
constexpr std::array<const char*, 6> kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
constexpr const char* kLonely = "#b9bec6";
constexpr const char* kInk = "#2b2f36";

/// Formats with one decimal; a tenth is less than a pixel.
std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  std::string shorter = text;
  if (shorter.ends_with(".0")) shorter.resize(shorter.size() - 2);
  return shorter;
}

// SVG's y axis points down, the scene's points up.
std::string place(Point point) { return number(point.x) + ' ' + number(kSceneSize - point.y); }

std::string outline(const PolygonColumn& polygons, std::size_t row) {
  std::string path;
  for (std::int32_t ring = polygons.rings[row]; ring < polygons.rings[row + 1]; ++ring) {
    for (std::int32_t i = polygons.offsets[ring]; i + 1 < polygons.offsets[ring + 1]; ++i) {
      path += (i == polygons.offsets[ring] ? "M" : "L") + place({polygons.x[i], polygons.y[i]});
    }
    path += 'Z';
  }
  return path;
}

/// Draws dots as zero-length lines with round caps, which take a few bytes each.
std::string dots(const std::string& places, const char* color, double width) {
  if (places.empty()) return {};
  return "<path d=\"" + places + "\" stroke=\"" + color + "\" stroke-width=\"" + number(width) + "\"/>\n";
}

struct Counts {
  std::size_t null = 0;
  std::size_t empty = 0;
  std::size_t outside = 0;
  std::size_t inside = 0;
  std::size_t several = 0;
};

/// The number of polygons that contain each point, and the first of them.
struct Matches {
  std::vector<std::int32_t> count;
  std::vector<std::int32_t> first;
};

Matches matches_of(const PointColumn& points, const Pairs& pairs) {
  Matches matches{std::vector<std::int32_t>(points.rows(), 0), std::vector<std::int32_t>(points.rows(), -1)};
  for (const Pair& pair : pairs) {
    const auto point = static_cast<std::size_t>(pair.point);
    if (matches.count[point]++ == 0) matches.first[point] = pair.polygon;
  }
  return matches;
}

std::string draw_points(const PointColumn& points, const Matches& matches, Counts& counts) {
  std::array<std::string, kColors.size()> colored;
  std::string lonely;
  std::string several;
  for (std::size_t row = 0; row < points.rows(); ++row) {
    counts.null += points.null(row);
    counts.empty += points.empty(row);
    if (points.null(row) || points.empty(row)) continue;
    const std::string dot = "M" + place(points[row]) + "h0";
    if (matches.count[row] == 0) {
      lonely += dot;
      ++counts.outside;
      continue;
    }
    ++counts.inside;
    colored[static_cast<std::size_t>(matches.first[row]) % kColors.size()] += dot;
    if (matches.count[row] == 1) continue;
    several += dot;
    ++counts.several;
  }
  std::string all = dots(lonely, kLonely, 4) + dots(several, kInk, 9.5);
  for (std::size_t color = 0; color < kColors.size(); ++color) all += dots(colored[color], kColors[color], 6);
  return all;
}

std::string legend_line(int line, const std::string& mark, std::size_t count, const std::string& what) {
  const std::string y = std::to_string(78 + 26 * line);
  return "<g transform=\"translate(1040 " + y + ")\">" + mark + "<text x=\"26\" y=\"5\"><tspan font-weight=\"600\">" +
         std::to_string(count) + "</tspan> " + what + "</text></g>\n";
}

std::string dot_mark(const char* color, double width, const char* rim = nullptr) {
  std::string mark;
  if (rim != nullptr) mark += std::string("<path d=\"M8 0h0\" stroke=\"") + rim + "\" stroke-width=\"13\"/>";
  return mark + "<path d=\"M8 0h0\" stroke=\"" + color + "\" stroke-width=\"" + number(width) + "\"/>";
}

std::string legend(const PolygonColumn& polygons, const Counts& counts, std::size_t pairs) {
  std::size_t with_holes = 0;
  std::size_t without = 0;
  for (std::size_t row = 0; row < polygons.rows(); ++row) {
    const std::int32_t rings = polygons.rings[row + 1] - polygons.rings[row];
    with_holes += rings > 1;
    without += rings == 1;
  }
  const std::string square = std::string("<path d=\"M1-7h14v14h-14z\" fill=\"") + kColors[0] +
                             "\" fill-opacity=\".16\" stroke=\"" + kColors[0] + "\" stroke-width=\"1.5\"/>";
  const std::string ring = std::string("<path fill-rule=\"evenodd\" d=\"M1-7h14v14h-14zM5-3h6v6h-6z\" fill=\"") +
                           kColors[0] + "\" fill-opacity=\".16\" stroke=\"" + kColors[0] + "\" stroke-width=\"1.5\"/>";
  const std::size_t nothing_there = counts.null + counts.empty + polygons.rows() - with_holes - without;
  return legend_line(0, "", pairs, "pairs of point and polygon") + legend_line(2, square, without, "polygons") +
         legend_line(3, ring, with_holes, "polygons with a hole") +
         legend_line(5, dot_mark(kColors[0], 8), counts.inside, "points within one, in its color") +
         legend_line(6, dot_mark(kColors[0], 8, kInk), counts.several, "of these within several") +
         legend_line(7, dot_mark(kLonely, 6), counts.outside, "points within none") +
         legend_line(9, "", nothing_there, "rows that are null or empty");
}

}  // namespace

std::string picture(const PointColumn& points, const PolygonColumn& polygons, const Pairs& pairs) {
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1400 1040\" width=\"1050\" height=\"780\" "
      "font-family=\"Inter,Helvetica,Arial,sans-serif\" font-size=\"17\" fill=\"" +
      std::string(kInk) +
      "\">\n<rect width=\"1400\" height=\"1040\" fill=\"#fff\"/>\n"
      "<clipPath id=\"map\"><rect width=\"1000\" height=\"1000\" rx=\"10\"/></clipPath>\n"
      "<g transform=\"translate(20 20)\" clip-path=\"url(#map)\">\n"
      "<rect width=\"1000\" height=\"1000\" fill=\"#f7f8fa\"/>\n"
      "<g fill-rule=\"evenodd\" fill-opacity=\".16\" stroke-width=\"1.5\" stroke-linejoin=\"round\">\n";
  for (std::size_t row = 0; row < polygons.rows(); ++row) {
    if (polygons.null(row) || polygons.empty(row)) continue;
    const std::string color = kColors[row % kColors.size()];
    svg += "<path fill=\"" + color + "\" stroke=\"" + color + "\" d=\"" + outline(polygons, row) + "\"/>\n";
  }
  Counts counts;
  const std::string drawn = draw_points(points, matches_of(points, pairs), counts);
  svg += "</g>\n<g stroke-linecap=\"round\">\n" + drawn + "</g>\n</g>\n<g stroke-linecap=\"round\">\n";
  svg += "<text x=\"1040\" y=\"44\" font-size=\"24\" font-weight=\"600\">spatial.sjoin</text>\n";
  return svg + legend(polygons, counts, pairs.size()) + "</g>\n</svg>\n";
}

}  // namespace spatial
