// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// The header of a hint file (docs/internals/formats/cache-folder.md), which stores the dependency sets of a request.
/// The header lists the location of each set; the sets follow, newest first. Each set has its own checksum, so a reader
/// can take the first without reading the others.
struct HintHeader {
  struct Slot {
    std::uint64_t offset = 0;  ///< in the file
    std::uint32_t size = 0;
    std::uint64_t checksum = 0;
  };
  std::vector<Slot> slots;

  std::uint64_t file_size() const;
};

/// Decodes the header; `file` can be only the beginning of the file.
Result<HintHeader> decode_hint_head(const RequestKey& request, std::span<const std::uint8_t> file);

/// Returns the request that a file claims to belong to, or nothing if it is not a hint file.
std::optional<RequestKey> hint_request(std::string_view file);

/// Returns the dependency set in a slot, as encoded by `DependencySet::encode`. Returns nothing if `file` is too short
/// or the slot is corrupt.
std::string_view hint_at(const HintHeader::Slot& slot, std::span<const std::uint8_t> file);

/// Encodes a complete hint file of encoded dependency sets, newest first, at most `Store::kMaxDependencySets`.
std::string encode_hints(const RequestKey& request, std::span<const std::string_view> dependency_sets);

}  // namespace kiln
