#pragma once

#include <string>

#include "bench/peers/adapters/adapter.hpp"

namespace kiln::peers {

/// The founding spec that a question is about: its source is a file with the name and an end of line.
inline std::string spec_name(const Question& asked) {
  return asked.source.substr(0, asked.source.find_last_not_of(" \n") + 1);
}

}  // namespace kiln::peers
