#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "compile/compiler.hpp"
#include "core/recipe.hpp"

namespace kiln::test {

/// The recipe of a unit with this compiler as it is now; an identity that cannot be had ends the test by an exception.
inline Recipe recipe_for(Compiler& compiler, Unit unit, Target target) {
  return {std::move(unit), std::move(target), compiler.identity().value(), std::filesystem::current_path().string()};
}

/// The whole text of a file of the repository, by its path in it.
inline std::string repository_text(const std::string& path) {
  std::ifstream in(std::string(KILN_SOURCE_DIR) + "/" + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace kiln::test
