#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <kiln/bytes.hpp>

namespace kiln {

/// A bundle that was linked into the program or into a library of its.
struct EmbeddedBundle {
  Bytes bytes;         ///< where the loader put them; whoever holds them keeps the library loaded
  std::string object;  ///< the program's or library's path
};

/// Those of all objects that are loaded, found by a note in each (docs/embedding-bundles.md): no path, no registration,
/// nothing that runs at load time. Any thread.
std::vector<EmbeddedBundle> embedded_bundles();
/// Grows whenever a library is loaded: cheap to ask, to know when to look again.
std::uint64_t loaded_objects();

/// What one note says: where a bundle lies, counted from the first byte of the segment that the note is in.
struct BundleNote {
  std::int64_t offset = 0;
  std::uint64_t size = 0;
};
/// The bundle notes of a segment of notes that is aligned like this. Any bytes may be given: notes of others are passed
/// over, and nothing is read behind one that does not fit. Whether a bundle is where it says is not looked at.
std::vector<BundleNote> parse_bundle_notes(std::span<const std::uint8_t> segment, std::uint64_t alignment);

}  // namespace kiln
