// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <kiln/result.hpp>
#include <kiln/runtime/mode.hpp>

#include "spatial/scene.hpp"

/// The commands of the program `spatial`, one source file each.
namespace spatial {

struct DemoOptions {
  SceneOptions scene;
  std::string operation = "sjoin";  ///< or "within" (the first polygon), "to_wkb", "dissolve"
  std::string backend = "auto";     ///< "auto", "cpu", "opencl", "cuda"
  std::string trace;
  bool json = false;
};
/// Runs the demo and returns the exit code: 0, or 1 if a unit was used that was not declared.
kiln::Result<int> demo(const DemoOptions& options);

struct PlotOptions {
  SceneOptions scene;
  std::string out = "spatial.svg";
};
kiln::Result<int> plot(const PlotOptions& options);

/// Times every operation on this machine, for `kiln calibrate`.
kiln::Result<int> calibrate();

}  // namespace spatial
