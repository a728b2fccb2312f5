#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <kiln/artifact.hpp>
#include <kiln/key.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// The head of an entry's file; docs/entry-format.md has the grammar. It alone tells what eviction needs to know.
struct EntryHeader {
  static constexpr std::size_t kSize = 88;

  Key key;
  std::uint32_t metadata_size = 0;
  std::uint64_t payload_size = 0;
  std::uint64_t metadata_checksum = 0;
  std::uint64_t payload_checksum = 0;
  double cost_ms = 0;

  /// Where the payload begins: aligned, so that whoever parses an ELF file in it may read its fields in place.
  std::uint64_t payload_offset() const;
  std::uint64_t file_size() const { return payload_offset() + payload_size; }
};

/// No entry is larger; a file that is larger is damage, and is not read into memory to find that out.
inline constexpr std::uint64_t kLargestEntry = std::uint64_t{1} << 30;

/// Reads the head; `file` may be the beginning of the file only.
Result<EntryHeader> decode_entry_header(std::span<const std::uint8_t> file);

/// What an entry's file holds before its payload, which follows as it is.
std::string encode_entry_head(const Key& key, const Artifact& artifact);

/// The artifact of a whole file. Its bytes are a part of `file`, not a copy. Anything that is not exactly what was
/// written under this key is Code::Corrupt.
Result<Artifact> decode_entry(const Key& key, const Bytes& file);

/// Likewise without the payload, from the first bytes of a file that was not read to its end.
Result<Artifact> decode_entry_description(const EntryHeader& header, std::span<const std::uint8_t> beginning);

}  // namespace kiln
