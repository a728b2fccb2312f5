#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "trust/statement.hpp"

namespace kiln {

/// An Ed25519 public key. A value.
struct PublicKey {
  std::array<std::uint8_t, 32> bytes{};

  KeyId id() const;
  /// `kiln-public-1:` and 64 hexadecimal digits: one word, for files, command lines and people.
  std::string text() const;
  static Result<PublicKey> parse(std::string_view text);

  friend bool operator==(const PublicKey&, const PublicKey&) = default;
};

/// The id of a key, given as that key or as all 64 digits of its id.
Result<KeyId> parse_key_id(std::string_view text);

struct Signature {
  KeyId key;
  std::array<std::uint8_t, 64> bytes{};
};

/// Whether `key` signed exactly this statement.
bool verifies(const PublicKey& key, const Signature& signature, const Statement& statement);

/// An Ed25519 secret key. It moves and is not copied, its memory is wiped, and no message ever has a part of it.
class SecretKey {
 public:
  static SecretKey generate();
  /// Refuses a file that others than this user can read: somebody else may have signed with it.
  static Result<SecretKey> read(const std::string& path);
  SecretKey(SecretKey&& other) noexcept;
  SecretKey& operator=(SecretKey&& other) noexcept;
  ~SecretKey();

  /// Makes the file, for this user alone; one that is there already is never overwritten.
  Status write(const std::string& path) const;
  PublicKey public_key() const;
  Signature sign(const Statement& statement) const;

 private:
  SecretKey() = default;
  std::array<std::uint8_t, 32> seed_{};
};

}  // namespace kiln
