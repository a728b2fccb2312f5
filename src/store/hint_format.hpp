#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// The file of a request's closures, docs/hint-format.md: a head that tells where each is, then the closures, newest
/// first, each with a checksum of its own, so that a reader takes the first without reading the others.
struct HintHead {
  struct Slot {
    std::uint64_t offset = 0;  ///< in the file
    std::uint32_t size = 0;
    std::uint64_t checksum = 0;
  };
  std::vector<Slot> slots;

  std::uint64_t file_size() const;
};

/// Reads the head; `file` may be the beginning of the file only.
Result<HintHead> decode_hint_head(const RequestKey& request, std::span<const std::uint8_t> file);

/// Of which request a file says to be; nothing where it is no file of closures.
std::optional<RequestKey> hint_owner(std::string_view file);

/// The closure in a slot, as Closure::encode made it; nothing where `file` does not reach so far or it is damaged.
std::string_view hint_in(const HintHead::Slot& slot, std::span<const std::uint8_t> file);

/// A whole file of encoded closures, newest first, at most Store::kMostClosures.
std::string encode_hints(const RequestKey& request, std::span<const std::string_view> closures);

}  // namespace kiln
