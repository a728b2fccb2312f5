#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <kiln/export.hpp>

namespace kiln {

/// A SHA-256 digest.
struct Digest {
  std::array<std::uint8_t, 32> bytes{};

  KILN_API std::string hex() const;
  KILN_API static std::optional<Digest> from_hex(std::string_view text);

  friend bool operator==(const Digest& a, const Digest& b) { return a.bytes == b.bytes; }
  friend bool operator!=(const Digest& a, const Digest& b) { return !(a == b); }
  friend bool operator<(const Digest& a, const Digest& b) { return a.bytes < b.bytes; }
};

/// Three digests that must never be taken for one another, so each has a type of its own.
template <class Tag>
struct TypedDigest {
  Digest digest;

  /// Of what another system compiled, by the key that this system has for it. `system` keeps the keys of different
  /// systems apart ("triton", "cuda.core"), and none can ever be a key of kiln's own: whoever names it answers for
  /// what his keys cover. For RequestKey and Key alone.
  static TypedDigest foreign(std::string_view system, std::string_view key);

  std::string hex() const { return digest.hex(); }
  friend bool operator==(const TypedDigest& a, const TypedDigest& b) { return a.digest == b.digest; }
  friend bool operator!=(const TypedDigest& a, const TypedDigest& b) { return !(a == b); }
  friend bool operator<(const TypedDigest& a, const TypedDigest& b) { return a.digest < b.digest; }
};

using UnitKey = TypedDigest<struct UnitKeyTag>;        ///< what the author wrote
using RequestKey = TypedDigest<struct RequestKeyTag>;  ///< that, a target and a compiler: known before compiling
using Key = TypedDigest<struct KeyTag>;                ///< that, and every file the compile read: names the artifact

template <>
KILN_API RequestKey RequestKey::foreign(std::string_view system, std::string_view key);
template <>
KILN_API Key Key::foreign(std::string_view system, std::string_view key);

}  // namespace kiln

// Doxygen takes a specialisation that is written outside of its namespace for a mistake.
/// @cond
template <>
struct std::hash<kiln::Digest> {
  std::size_t operator()(const kiln::Digest& digest) const noexcept {
    std::size_t prefix;
    std::memcpy(&prefix, digest.bytes.data(), sizeof prefix);
    return prefix;
  }
};

template <class Tag>
struct std::hash<kiln::TypedDigest<Tag>> {
  std::size_t operator()(const kiln::TypedDigest<Tag>& key) const noexcept {
    return std::hash<kiln::Digest>()(key.digest);
  }
};
/// @endcond
