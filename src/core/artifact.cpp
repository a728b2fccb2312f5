// SPDX-License-Identifier: Apache-2.0
#include <kiln/artifact.hpp>

namespace kiln {

const char* to_string(Origin origin) {
  switch (origin) {
    case Origin::Compiled: return "compiled";
    case Origin::Memory: return "memory";
    case Origin::Bundle: return "bundle";
    case Origin::Disk: return "disk";
    case Origin::Remote: return "remote";
  }
  return "unknown";
}

const std::string* Artifact::symbol(std::string_view entry) const {
  for (const EntryPoint& candidate : entries) {
    if (candidate.name == entry) return &candidate.symbol;
  }
  return nullptr;
}

}  // namespace kiln
