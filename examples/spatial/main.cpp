// SPDX-License-Identifier: Apache-2.0
// A program that uses the library: a join of generated data, and a plot of one.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <functional>

#include "spatial/commands.hpp"
#include "spatial/device/units.hpp"

namespace {

constexpr std::size_t kMaxRows = 100'000'000;

void add_scene(CLI::App& command, spatial::SceneOptions& scene) {
  command.add_option("--points", scene.points, "Number of points")->check(CLI::Range(std::size_t{0}, kMaxRows));
  command.add_option("--polygons", scene.polygons, "Number of polygons")
      ->check(CLI::Range(std::size_t{0}, kMaxRows / 50));
  command.add_option("--seed", scene.seed, "Seed of the generated data");
}

}  // namespace

int main(int count, char** arguments) {
  spatial::let_pocl_keep_work_groups();
  CLI::App app{"A small spatial library built on kiln-runtime.", "spatial"};
  app.require_subcommand(1);
  std::function<kiln::Result<int>()> run;

  spatial::DemoOptions demo;
  CLI::App* demo_command = app.add_subcommand("demo", "Join generated points and polygons and show where it ran");
  add_scene(*demo_command, demo.scene);
  demo_command
      ->add_option(
          "--operation", demo.operation,
          "Operation: sjoin, within (the first polygon), to_wkb (of the polygons), or dissolve (of a coverage)")
      ->check(CLI::IsMember({"sjoin", "within", "to_wkb", "dissolve"}));
  demo_command->add_option("--backend", demo.backend, "auto, cpu, opencl or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "opencl", "cuda"}));
  demo_command->add_option("--trace", demo.trace, "Write a trace to this file, for `kiln audit`");
  demo_command->add_flag("--json", demo.json, "Print JSON");
  demo_command->callback([&] { run = [&] { return spatial::demo(demo); }; });

  spatial::PlotOptions plot;
  plot.scene.points = 2'500;
  plot.scene.polygons = 24;
  plot.scene.cover = 0.6;
  CLI::App* plot_command = app.add_subcommand("plot", "Draw points, polygons and their join");
  add_scene(*plot_command, plot.scene);
  plot_command->add_option("-o,--output", plot.out, "SVG file to write; - for standard output");
  plot_command->callback([&] { run = [&] { return spatial::plot(plot); }; });

  app.add_subcommand("calibrate", "Time every operation; run it with 'kiln calibrate -- spatial calibrate'")
      ->callback([&] { run = [] { return spatial::calibrate(); }; });

  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const kiln::Result<int> code = run();
  if (code) return *code;
  std::fprintf(stderr, "spatial: %s\n%s", code.error().message.c_str(), code.error().log.c_str());
  return 2;
}
