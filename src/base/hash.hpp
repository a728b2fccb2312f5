// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <kiln/key.hpp>

namespace kiln {

inline std::span<const std::uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// Returns two lower-case hex digits for each byte.
std::string hex_of(std::span<const std::uint8_t> bytes);

/// SHA-256, used for identity. Uses libcrypto's low-level functions: the EVP functions load OpenSSL's providers on
/// their first call, which takes more than a millisecond (measured: 1.1–1.8 ms).
class Sha256 {
 public:
  Sha256();
  Sha256& add(std::span<const std::uint8_t> data);
  Digest finish();

 private:
  // Storage for libcrypto's SHA256_CTX, so that only one source file includes its deprecated header.
  alignas(8) unsigned char context_[128];
};

Digest sha256(std::span<const std::uint8_t> data);
inline Digest sha256(std::string_view text) { return sha256(as_bytes(text)); }

/// XXH3, used for checksums. It detects corruption; it does not resist an attacker.
std::uint64_t xxh3(std::span<const std::uint8_t> data);
struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};
Hash128 xxh3_128(std::span<const std::uint8_t> data);

}  // namespace kiln
