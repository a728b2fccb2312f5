#pragma once

#include <cstdint>
#include <string>

#include <kiln/result.hpp>
#include <kiln/runtime/mode.hpp>

#include "spatial/scene.hpp"

/// What the program `spatial` does; each is one source.
namespace spatial {

struct DemoOptions {
  SceneOptions scene;
  std::string operation = "sjoin";  ///< or "within": every point within the first polygon
  std::string backend = "auto";     ///< "auto", "cpu", "opencl", "cuda"
  std::string trace;
  bool json = false;
};
/// The exit code: 0, or 1 where a unit was used that nobody had declared.
kiln::Result<int> demo(const DemoOptions& options);

struct PlotOptions {
  SceneOptions scene;
  std::string out = "spatial.svg";
};
kiln::Result<int> plot(const PlotOptions& options);

/// What `kiln calibrate` asks for: times every operation on what is here.
kiln::Result<int> calibrate();

}  // namespace spatial
