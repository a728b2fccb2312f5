// SPDX-License-Identifier: Apache-2.0
#include "remote/packed_entry.hpp"

#include <cstdint>
#include <utility>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/zstd_frame.hpp"
#include "cache/entry_format.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNPCK1";
constexpr std::uint32_t kVersion = 1;
constexpr int kLevel = 6;  // level 19 makes cubins 11 to 20 % smaller and takes 60 times as long

Error corrupt_pack(std::string what) { return make_error(Code::Corrupt, "corrupt packed entry: " + std::move(what)); }

}  // namespace

Result<std::string> pack_entry(std::string entry) {
  BinaryWriter head;
  head.raw(kMagic.data(), kMagic.size()).u32(kVersion).u64(entry.size());
  std::string packed = std::move(head).bytes();
  if (Status added = ZstdCompressor(kLevel).append_frame(entry, packed); !added) return std::move(added).error();
  const bool saves = packed.size() <= entry.size() - entry.size() / 20;
  if (!saves || entry.size() > max_unpacked_bytes(packed.size() - kPackedHeaderBytes)) return entry;
  return packed;
}

Result<Bytes> unpack_entry(const Bytes& content) {
  if (!content.view().starts_with(kMagic)) return content;
  BinaryReader in(content.view());
  in.raw(kMagic.size());
  const std::uint32_t version = in.u32();
  const std::uint64_t size = in.u64();
  if (!in.ok()) return corrupt_pack("truncated header");
  if (version > kVersion) {
    return make_error(Code::Unsupported, "packed entry of format version " + std::to_string(version) +
                                             ", this kiln reads " + std::to_string(kVersion));
  }
  if (version != kVersion) return corrupt_pack("format version 0");
  const std::span<const std::uint8_t> frame(content.data() + kPackedHeaderBytes, content.size() - kPackedHeaderBytes);
  if (size < EntryHeader::kSize || size > kMaxEntryBytes || size > max_unpacked_bytes(frame.size()))
    return corrupt_pack("a size of " + std::to_string(size) + " bytes is outside the limits");
  auto entry = allocate_uninitialized(size);
  if (entry == nullptr) return make_error(Code::Io, "cannot decompress an entry: out of memory");
  if (Status unpacked = ZstdDecompressor().decompress(frame, {entry.get(), size}); !unpacked) {
    if (unpacked.error().code != Code::Corrupt) return std::move(unpacked).error();
    return corrupt_pack(unpacked.error().message);
  }
  return share_bytes(std::move(entry), size);
}

}  // namespace kiln
