// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace kiln::jit {

/// A file of rules that the program contains.
struct BuiltInRules {
  const char* name;
  const char* text;
};

/// Returns the files of apps/kiln/jit/rules in the order of their names. CMake generates the source.
std::span<const BuiltInRules> built_in_rules();

}  // namespace kiln::jit
