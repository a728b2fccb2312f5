// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "apps/kiln/jit/rule.hpp"

namespace kiln::jit {

inline constexpr std::uint64_t kMaxPackBytes = std::uint64_t{256} << 20;
inline constexpr std::size_t kMaxPackFiles = 10'000;
inline constexpr std::size_t kMaxPackDepth = 32;  ///< components of a path
/// Of all rewritten files of an entry: they grow with the path of the root.
inline constexpr std::size_t kMaxRewrittenBytes = std::size_t{1} << 20;

/// One file of an entry. `bytes` refers to memory of the caller.
struct PackedFile {
  std::string_view path;  ///< relative to the entry; for an entry that is one file, its name
  bool executable = false;
  bool rewritten = false;  ///< a placeholder stands for the path of the root
  std::string_view bytes;

  friend bool operator==(const PackedFile&, const PackedFile&) = default;
};

/// The files of one entry. A value type.
struct EntryPack {
  Rule::Kind kind = Rule::Kind::Folder;
  std::vector<PackedFile> files;  ///< in ascending order of their paths

  friend bool operator==(const EntryPack&, const EntryPack&) = default;
};

/// Encodes an entry (docs/internals/formats/jit.md). The files are in order and their paths are safe.
std::string encode_pack(const EntryPack& pack);
/// Decodes an entry; the result refers to `bytes`. Returns Code::Corrupt for anything that `encode_pack` does not
/// write, and Code::Unsupported for another version.
Result<EntryPack> decode_pack(std::string_view bytes);

/// Text that stands for the path of the root in a packed file.
inline constexpr std::string_view kRootPlaceholder = "@kiln-jit-root-7c1f@";
/// Returns whether a path can replace the placeholder: it is absolute and no format quotes any of its characters.
bool is_plain_root(std::string_view root);
/// Returns `text` with every occurrence of `from` replaced.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

}  // namespace kiln::jit
