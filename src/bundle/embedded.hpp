// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <kiln/bytes.hpp>

namespace kiln {

/// A bundle that is linked into the program or into one of its libraries.
struct EmbeddedBundle {
  Bytes bytes;         ///< mapped by the loader; holding them keeps the library loaded
  std::string object;  ///< path of the program or library
};

/// Returns the bundles of all loaded objects. A note in each object locates them (docs/internals/formats/bundle.md), so
/// they need no path, no registration and no code at load time. Thread-safe.
std::vector<EmbeddedBundle> embedded_bundles();
/// Returns a counter that grows when a library is loaded. It is cheap and shows when to search again.
std::uint64_t loaded_object_count();

/// The contents of one note: the location of a bundle, relative to the first byte of the segment that contains the
/// note.
struct BundleNote {
  std::int64_t offset = 0;
  std::uint64_t size = 0;
};
/// Parses the bundle notes of a note segment with this alignment. Accepts any bytes: skips other notes and stops at one
/// that does not fit. Does not check that a bundle is at the stated location.
std::vector<BundleNote> parse_bundle_notes(std::span<const std::uint8_t> segment, std::uint64_t alignment);

}  // namespace kiln
