#pragma once

#include <vector>

#include <kiln/unit.hpp>

namespace kiln::test {

/// A unit of the project's own.
struct ProjectUnit {
  Unit unit;
  bool heavy = false;  ///< it includes CUB: seconds where others take hundredths
  /// NVRTC may put its variables into another order where headers are precompiled: they have variable templates.
  bool may_reorder = false;
  bool one_of_many = false;  ///< others stand for it in CI
};

/// Every unit that the project gives to NVRTC: kernels/, the examples' sources, the benchmarks', and what tests compile
/// with headers of the toolkit. tests/property/pch_identity_test.cpp checks that no file of kernels/ is missing.
std::vector<ProjectUnit> project_units();

}  // namespace kiln::test
