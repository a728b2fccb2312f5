// SPDX-License-Identifier: Apache-2.0
#include "cache/usage_format.hpp"

#include "base/codec.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNUSE1";
constexpr std::uint32_t kVersion = 1;

}  // namespace

std::string encode_usage_head(std::chrono::nanoseconds scanned_at) {
  BinaryWriter out;
  out.raw(kMagic.data(), kMagic.size()).u32(kVersion).u32(0).u64(static_cast<std::uint64_t>(scanned_at.count()));
  out.u64(xxh3(as_bytes(out.bytes())));
  return std::move(out).bytes();
}

std::string encode_usage_record(std::int64_t bytes) {
  BinaryWriter out;
  out.u64(static_cast<std::uint64_t>(bytes));
  out.u64(xxh3(as_bytes(out.bytes())));
  return std::move(out).bytes();
}

std::optional<std::chrono::nanoseconds> decode_usage_head(std::span<const std::uint8_t> file) {
  BinaryReader in(file);
  if (in.raw(kMagic.size()) != kMagic || in.u32() != kVersion || in.u32() != 0) return std::nullopt;
  const std::uint64_t scanned_at = in.u64();
  const std::uint64_t checksum = in.u64();
  if (!in.ok() || checksum != xxh3(file.first(kUsageHead - 8))) return std::nullopt;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(scanned_at));
}

std::int64_t sum_of_usage(std::span<const std::uint8_t> records) {
  std::uint64_t sum = 0;  // unsigned, because forged records may overflow
  for (; records.size() >= kUsageRecord; records = records.subspan(kUsageRecord)) {
    BinaryReader in(records.first(kUsageRecord));
    const std::uint64_t bytes = in.u64();
    if (in.u64() == xxh3(records.first(8))) sum += bytes;
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace kiln
