// SPDX-License-Identifier: Apache-2.0
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

/// A digest with a type of its own per purpose, so that unit keys, request keys and artifact keys cannot be mixed up.
template <class Tag>
struct TypedDigest {
  Digest digest;

  /// Returns the kiln key of an entry that another system compiled, from that system's own key. `system` ("triton",
  /// "cuda.core") keeps the keys of different systems apart, and the result never equals a key of kiln's own units. The
  /// caller is responsible for what its keys cover. Defined for RequestKey and ArtifactKey only.
  static TypedDigest external(std::string_view system, std::string_view key);

  std::string hex() const { return digest.hex(); }
  friend bool operator==(const TypedDigest& a, const TypedDigest& b) { return a.digest == b.digest; }
  friend bool operator!=(const TypedDigest& a, const TypedDigest& b) { return !(a == b); }
  friend bool operator<(const TypedDigest& a, const TypedDigest& b) { return a.digest < b.digest; }
};

using UnitKey = TypedDigest<struct UnitKeyTag>;  ///< covers what the author wrote
/// covers the unit, the target and the compiler; known before the compile
using RequestKey = TypedDigest<struct RequestKeyTag>;
/// covers the request and every file that the compile read; identifies the artifact
using ArtifactKey = TypedDigest<struct KeyTag>;

/// @cond SPECIALIZATIONS
template <>
KILN_API RequestKey RequestKey::external(std::string_view system, std::string_view key);
template <>
KILN_API ArtifactKey ArtifactKey::external(std::string_view system, std::string_view key);
/// @endcond

}  // namespace kiln

// Doxygen reports an error for a specialization that is written outside its namespace.
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
