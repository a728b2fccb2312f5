// SPDX-License-Identifier: Apache-2.0
#include "cache/hint_format.hpp"

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "cache/store.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNHNT1";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kOwnerAt = 8 + 4 + 4;
constexpr std::size_t kFixed = kOwnerAt + 32;
constexpr std::size_t kPerSlot = 4 + 8;

std::size_t head_size(std::size_t count) { return kFixed + count * kPerSlot + 8; }

}  // namespace

std::uint64_t HintHeader::file_size() const {
  return slots.empty() ? head_size(0) : slots.back().offset + slots.back().size;
}

std::optional<RequestKey> hint_request(std::string_view file) {
  BinaryReader in(file);
  if (in.raw(kMagic.size()) != kMagic) return std::nullopt;
  (void)in.raw(kOwnerAt - kMagic.size());
  const RequestKey owner{in.digest()};
  return in.ok() ? std::optional(owner) : std::nullopt;
}

Result<HintHeader> decode_hint_head(const RequestKey& request, std::span<const std::uint8_t> file) {
  BinaryReader in(file);
  if (in.raw(kMagic.size()) != kMagic) return make_error(Code::Corrupt, "corrupt hint file: wrong magic");
  const std::uint32_t version = in.u32();
  if (version != kVersion) {
    return make_error(Code::Corrupt, "corrupt hint file: unsupported format version " + std::to_string(version));
  }
  const std::uint32_t count = in.count(kPerSlot);
  const Digest owner = in.digest();
  if (!in.ok() || count > Store::kMaxDependencySets)
    return make_error(Code::Corrupt, "corrupt hint file: truncated header");
  HintHeader head;
  std::uint64_t offset = head_size(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    HintHeader::Slot slot;
    slot.offset = offset;
    slot.size = in.u32();
    slot.checksum = in.u64();
    offset += slot.size;
    head.slots.push_back(slot);
  }
  const std::uint64_t checksum = in.u64();
  if (!in.ok() || checksum != xxh3(file.first(head_size(count) - 8))) {
    return make_error(Code::Corrupt, "corrupt hint file: header checksum mismatch");
  }
  if (owner != request.digest) return make_error(Code::Corrupt, "corrupt hint file: request key mismatch");
  return head;
}

std::string_view hint_at(const HintHeader::Slot& slot, std::span<const std::uint8_t> file) {
  if (slot.offset > file.size() || slot.size > file.size() - slot.offset) return {};
  const auto bytes = file.subspan(slot.offset, slot.size);
  if (xxh3(bytes) != slot.checksum) return {};
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string encode_hints(const RequestKey& request, std::span<const std::string_view> dependency_sets) {
  dependency_sets = dependency_sets.first(std::min(dependency_sets.size(), Store::kMaxDependencySets));
  BinaryWriter out;
  out.raw(kMagic.data(), kMagic.size()).u32(kVersion).u32(static_cast<std::uint32_t>(dependency_sets.size()));
  out.digest(request.digest);
  for (const std::string_view dependency_set : dependency_sets) {
    out.u32(static_cast<std::uint32_t>(dependency_set.size())).u64(xxh3(as_bytes(dependency_set)));
  }
  out.u64(xxh3(as_bytes(out.bytes())));
  for (const std::string_view dependency_set : dependency_sets) out.raw(dependency_set.data(), dependency_set.size());
  return std::move(out).bytes();
}

}  // namespace kiln
