// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <fstream>
#include <iostream>

#include "spatial/commands.hpp"
#include "spatial/operations.hpp"
#include "spatial/svg_plot.hpp"

namespace spatial {

kiln::Result<int> plot(const PlotOptions& options) {
  kiln::Result<kiln::Session> session = kiln::Session::open();
  if (!session) return session.error();
  runtime::Runtime runtime(*session);
  const SyntheticData scene = make_scene(options.scene);
  kiln::Result<PlacedPairs> joined = sjoin(runtime, scene.points, scene.polygons);
  if (!joined) return joined.error();
  kiln::Result<Pairs> pairs = materialize(runtime, *std::move(joined));
  if (!pairs) return pairs.error();
  const std::string svg = picture(scene.points, scene.polygons, *pairs);
  if (options.out == "-") {
    std::cout << svg;
    return 0;
  }
  std::ofstream file(options.out, std::ios::binary);
  file << svg;
  file.close();
  if (!file) return kiln::Error{kiln::Code::Io, "cannot write " + options.out, {}};
  std::printf("%s: %zu points, %zu polygons, %zu pairs\n", options.out.c_str(), scene.points.rows(),
              scene.polygons.rows(), pairs->size());
  return 0;
}

}  // namespace spatial
