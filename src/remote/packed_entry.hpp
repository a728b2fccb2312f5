// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <kiln/bytes.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// Size of the header of a packed entry. Content that is smaller is neither a packed entry nor an entry.
inline constexpr std::size_t kPackedHeaderBytes = 8 + 4 + 8;

/// Returns the content of an entry in a remote store: the entry compressed, or the entry itself if compression saves
/// less than 5 %. docs/internals/formats/remote.md has the grammar.
Result<std::string> pack_entry(std::string entry);

/// Returns the entry in the content of a remote store. Content without the magic of a packed entry is the entry itself.
/// Allocates at most the size that the content states, which is at most kMaxEntryBytes. Returns `Code::Unsupported` if
/// a newer version of kiln wrote the content, and `Code::Corrupt` if no version did.
Result<Bytes> unpack_entry(const Bytes& content);

}  // namespace kiln
