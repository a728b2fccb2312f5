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

/// Two digits, 0 to f, for each byte.
std::string hex_of(std::span<const std::uint8_t> bytes);

/// SHA-256, for identity. Uses libcrypto's low-level functions: the EVP ones load OpenSSL's providers at their first
/// call, which costs more than a millisecond (measured: 1.1–1.8 ms).
class Sha256 {
 public:
  Sha256();
  Sha256& add(std::span<const std::uint8_t> data);
  Digest finish();

 private:
  // Room for libcrypto's SHA256_CTX, so that its deprecated header stays in one source file.
  alignas(8) unsigned char context_[128];
};

Digest sha256(std::span<const std::uint8_t> data);
inline Digest sha256(std::string_view text) { return sha256(as_bytes(text)); }

/// XXH3, for checksums: it finds damage, it does not resist an attacker.
std::uint64_t xxh3(std::span<const std::uint8_t> data);

}  // namespace kiln
