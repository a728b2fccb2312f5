// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

namespace kiln::jit {

inline constexpr std::size_t kMaxListBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxListLines = 100'000;

/// The entries of one system that belong to a profile and an environment: the only mutable object of `kiln jit`. There
/// is one list per publisher, which is a namespace, or `local` for this user's cache and for bundles made from it. A
/// value type.
struct EntryList {
  struct Line {
    std::string path;  ///< relative to the root
    Digest digest;     ///< SHA-256 of the packed entry
    std::uint64_t size = 0;

    friend bool operator==(const Line&, const Line&) = default;
  };
  std::string profile;
  std::string environment;  ///< text of the environment (environment.hpp)
  std::string publisher;
  std::vector<Line> lines;  ///< in ascending order of their paths

  /// Encodes the list (docs/internals/formats/jit.md).
  std::string encode() const;
  /// Returns Code::Corrupt for anything that `encode` does not write, and Code::Unsupported for another version.
  static Result<EntryList> decode(std::string_view bytes);
  /// Returns the line of a path, or null.
  const Line* find(std::string_view path) const;
  /// Adds lines. A line of `more` replaces the line of the same path if `replace` is true. Returns whether the list
  /// changed.
  bool add(const std::vector<Line>& more, bool replace);

  friend bool operator==(const EntryList&, const EntryList&) = default;
};

/// Returns the key of a list in the external cache of its system.
std::string list_key(std::string_view profile, std::string_view environment, std::string_view publisher);
/// Returns the key of a packed entry in the external cache of its system.
std::string entry_key(const Digest& digest);
/// Returns the name of the external cache of a system: `jit.tilelang`.
std::string cache_name(std::string_view system);

/// Publisher of the lists in this user's cache and in bundles.
inline constexpr std::string_view kLocalPublisher = "local";

}  // namespace kiln::jit
