// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "bench/peers/adapters/adapter.hpp"

namespace kiln::peers {

/// Returns the name of the predefined spec that is requested: the source file contains the name and a newline.
inline std::string spec_name(const Question& asked) {
  return asked.source.substr(0, asked.source.find_last_not_of(" \n") + 1);
}

}  // namespace kiln::peers
