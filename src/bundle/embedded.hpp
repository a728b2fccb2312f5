#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kiln/bytes.hpp>

namespace kiln {

/// A bundle that was linked into the program or into a library of its.
struct EmbeddedBundle {
  Bytes bytes;         ///< where the loader put them; they live as long as the library is loaded
  std::string object;  ///< the program's or library's path
};

/// Those of all objects that are loaded, found by a note in each (docs/embedding-bundles.md): no path, no registration,
/// nothing that runs at load time.
std::vector<EmbeddedBundle> embedded_bundles();
/// Grows whenever a library is loaded: cheap to ask, to know when to look again.
std::uint64_t loaded_objects();

}  // namespace kiln
