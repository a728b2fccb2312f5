// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "trust/statement.hpp"

namespace kiln {

/// An Ed25519 public key. A value type.
struct PublicKey {
  std::array<std::uint8_t, 32> bytes{};

  KeyId id() const;
  /// Returns `kiln-public-1:` and 64 hexadecimal digits: one word for files, command lines and users.
  std::string text() const;
  static Result<PublicKey> parse(std::string_view text);

  friend bool operator==(const PublicKey&, const PublicKey&) = default;
};

/// Parses the id of a key, given as that public key or as all 64 digits of its id.
Result<KeyId> parse_key_id(std::string_view text);

struct Signature {
  KeyId key;
  std::array<std::uint8_t, 64> bytes{};

  friend bool operator==(const Signature&, const Signature&) = default;
};

/// Returns whether `key` signed exactly this statement.
bool verify_signature(const PublicKey& key, const Signature& signature, const Statement& statement);

/// An Ed25519 secret key. Move-only; its memory is wiped, and no message contains any part of it.
class SecretKey {
 public:
  static SecretKey generate();
  /// Reads a key file. Rejects a file that other users can read, because they could have signed with it.
  static Result<SecretKey> read(const std::string& path);
  SecretKey(SecretKey&& other) noexcept;
  SecretKey& operator=(SecretKey&& other) noexcept;
  ~SecretKey();

  /// Creates the key file, accessible to this user only. Never overwrites an existing file.
  Status write(const std::string& path) const;
  PublicKey public_key() const;
  Signature sign(const Statement& statement) const;

 private:
  SecretKey() = default;
  std::array<std::uint8_t, 32> seed_{};
};

}  // namespace kiln
