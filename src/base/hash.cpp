// SPDX-License-Identifier: Apache-2.0
#include "base/hash.hpp"

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kiln {

static_assert(sizeof(SHA256_CTX) <= 128);

Sha256::Sha256() { SHA256_Init(reinterpret_cast<SHA256_CTX*>(context_)); }

Sha256& Sha256::add(std::span<const std::uint8_t> data) {
  SHA256_Update(reinterpret_cast<SHA256_CTX*>(context_), data.data(), data.size());
  return *this;
}

Digest Sha256::finish() {
  Digest digest;
  SHA256_Final(digest.bytes.data(), reinterpret_cast<SHA256_CTX*>(context_));
  return digest;
}

Digest sha256(std::span<const std::uint8_t> data) { return Sha256().add(data).finish(); }

std::uint64_t xxh3(std::span<const std::uint8_t> data) { return XXH3_64bits(data.data(), data.size()); }

Hash128 xxh3_128(std::span<const std::uint8_t> data) {
  const XXH128_hash_t hash = XXH3_128bits(data.data(), data.size());
  return {hash.low64, hash.high64};
}

std::string Digest::hex() const { return hex_of(bytes); }

std::string hex_of(std::span<const std::uint8_t> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text(2 * bytes.size(), '0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text[2 * i] = digits[bytes[i] >> 4];
    text[2 * i + 1] = digits[bytes[i] & 15];
  }
  return text;
}

std::optional<Digest> Digest::from_hex(std::string_view text) {
  Digest digest;
  if (text.size() != 2 * digest.bytes.size()) return std::nullopt;
  const auto nibble = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    const int high = nibble(text[2 * i]);
    const int low = nibble(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return digest;
}

}  // namespace kiln
