// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <kiln/artifact.hpp>
#include <kiln/key.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// The header of an entry file (docs/internals/formats/cache-folder.md). It contains everything that eviction needs.
struct EntryHeader {
  static constexpr std::size_t kSize = 88;

  ArtifactKey key;
  std::uint32_t metadata_size = 0;
  std::uint64_t payload_size = 0;
  std::uint64_t metadata_checksum = 0;
  std::uint64_t payload_checksum = 0;
  double cost_ms = 0;

  /// Returns the offset of the payload. It is aligned so that an ELF parser can read fields in place.
  std::uint64_t payload_offset() const;
  std::uint64_t file_size() const { return payload_offset() + payload_size; }
};

/// Maximum size of an entry. A larger file is corrupt and is not read into memory.
inline constexpr std::uint64_t kMaxEntryBytes = std::uint64_t{1} << 30;

/// Decodes the header; `file` can be only the beginning of the file.
Result<EntryHeader> decode_entry_header(std::span<const std::uint8_t> file);

/// Returns whether a newer version of kiln wrote the file.
bool is_newer_entry(std::span<const std::uint8_t> file);

/// Returns the bytes of an entry file that precede the payload. The payload follows unchanged.
std::string encode_entry_header(const ArtifactKey& key, const Artifact& artifact);

/// Decodes the artifact from a complete file. Its bytes share memory with `file`. Returns `Code::Corrupt` if the file
/// differs from what was written under this key.
Result<Artifact> decode_entry(const ArtifactKey& key, const Bytes& file);

/// Decodes the artifact without its payload, from the first bytes of a file.
Result<Artifact> decode_entry_metadata(const EntryHeader& header, std::span<const std::uint8_t> beginning);

}  // namespace kiln
