// SPDX-License-Identifier: Apache-2.0
#include "cache/entry_format.hpp"

#include <bit>
#include <cstring>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "core/recipe.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNENT1";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kAlignment = 16;
constexpr std::size_t kChecksumAt = EntryHeader::kSize - 8;

Error corrupt(std::string what) { return make_error(Code::Corrupt, "corrupt entry: " + std::move(what)); }

std::string_view metadata_in(const EntryHeader& header, std::span<const std::uint8_t> beginning) {
  return {reinterpret_cast<const char*>(beginning.data()) + EntryHeader::kSize, header.metadata_size};
}

Status check_description(const EntryHeader& header, std::span<const std::uint8_t> beginning) {
  if (beginning.size() < header.payload_offset()) return corrupt("truncated file");
  if (xxh3(as_bytes(metadata_in(header, beginning))) != header.metadata_checksum)
    return corrupt("metadata checksum mismatch");
  for (std::size_t i = EntryHeader::kSize + header.metadata_size; i < header.payload_offset(); ++i) {
    if (beginning[i] != 0) return corrupt("nonzero padding");
  }
  return {};
}

Status check_whole(const EntryHeader& header, const ArtifactKey& key, std::span<const std::uint8_t> file) {
  if (header.key != key) return corrupt("key mismatch");
  if (header.file_size() != file.size()) return corrupt("file size does not match the header");
  if (xxh3(file.subspan(header.payload_offset())) != header.payload_checksum)
    return corrupt("payload checksum mismatch");
  return {};
}

}  // namespace

std::uint64_t EntryHeader::payload_offset() const {
  return (kSize + std::uint64_t{metadata_size} + kAlignment - 1) / kAlignment * kAlignment;
}

Result<EntryHeader> decode_entry_header(std::span<const std::uint8_t> file) {
  if (file.size() < EntryHeader::kSize) return corrupt("truncated header");
  const std::span<const std::uint8_t> head = file.first(EntryHeader::kSize);
  BinaryReader in(head);
  if (in.raw(kMagic.size()) != kMagic) return corrupt("wrong magic");
  const std::uint32_t version = in.u32();
  if (version != kVersion) {
    return corrupt("unsupported format version " + std::to_string(version) + ", this kiln reads " +
                   std::to_string(kVersion));
  }
  EntryHeader header;
  header.metadata_size = in.u32();
  header.payload_size = in.u64();
  header.key.digest = in.digest();
  header.metadata_checksum = in.u64();
  header.payload_checksum = in.u64();
  header.cost_ms = in.f64();
  if (in.u64() != xxh3(head.first(kChecksumAt))) return corrupt("header checksum mismatch");
  // Limited before the sizes are added, to avoid overflow.
  if (header.payload_size > kMaxEntryBytes || header.metadata_size > kMaxEntryBytes)
    return corrupt("size limit exceeded");
  return header;
}

bool is_newer_entry(std::span<const std::uint8_t> file) {
  BinaryReader in(file);
  const bool is_entry = in.raw(kMagic.size()) == kMagic;
  const std::uint32_t version = in.u32();
  return in.ok() && is_entry && version > kVersion;
}

std::string encode_entry_header(const ArtifactKey& key, const Artifact& artifact) {
  const std::string metadata = encode_metadata(artifact);
  EntryHeader header;
  header.metadata_size = static_cast<std::uint32_t>(metadata.size());
  BinaryWriter out;
  out.reserve(header.payload_offset());
  out.raw(kMagic.data(), kMagic.size()).u32(kVersion).u32(header.metadata_size).u64(artifact.bytes.size());
  out.digest(key.digest).u64(xxh3(as_bytes(metadata))).u64(xxh3(as_bytes(artifact.bytes.view())));
  out.f64(artifact.metadata.cost_ms);
  out.u64(xxh3(as_bytes(out.bytes())));
  out.raw(metadata.data(), metadata.size());
  std::string head = std::move(out).bytes();
  head.resize(header.payload_offset(), '\0');
  return head;
}

// These functions have one return object each, so that it is constructed in place.
Result<Artifact> decode_entry_metadata(const EntryHeader& header, std::span<const std::uint8_t> beginning) {
  const Status good = check_description(header, beginning);
  Result<Artifact> artifact = good ? decode_metadata(metadata_in(header, beginning)) : Result<Artifact>(good.error());
  if (artifact &&
      std::bit_cast<std::uint64_t>(artifact->metadata.cost_ms) != std::bit_cast<std::uint64_t>(header.cost_ms))
    artifact = corrupt("cost in the metadata does not match the header");
  return artifact;
}

Result<Artifact> decode_entry(const ArtifactKey& key, const Bytes& file) {
  const std::span<const std::uint8_t> bytes(file.data(), file.size());
  const auto header = decode_entry_header(bytes);
  const Status good = header ? check_whole(*header, key, bytes) : Status(header.error());
  Result<Artifact> artifact = good ? decode_entry_metadata(*header, bytes) : Result<Artifact>(good.error());
  if (artifact) artifact->bytes = file.slice(header->payload_offset(), header->payload_size);
  return artifact;
}

}  // namespace kiln
