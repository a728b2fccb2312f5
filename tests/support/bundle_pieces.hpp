#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bundle/bundle_image.hpp"
#include "bundle/bundle_source.hpp"
#include "support/artifacts.hpp"

namespace kiln::test {

/// Pieces of the sizes that a bundle's have, with nothing in them that a bundle has: for whoever only carries them.
/// Nothing compresses them.
inline BundleImage pieces(std::size_t groups, std::size_t group_size, std::size_t head_size = 8192) {
  BundleImage image;
  image.head = payload_of(key_number(0), head_size);
  image.groups.push_back(payload_of(key_number(1), head_size));
  for (std::size_t i = 0; i < groups; ++i) {
    image.groups.push_back(payload_of(key_number(2 + i), group_size + 16 * i));
  }
  return image;
}

/// Everything that a source has, asked for as a reader does that knows the sizes; or what was wrong.
inline Result<BundleImage> read_pieces(BundleSource& source, const BundleImage& sizes) {
  BundleImage image;
  const Result<Bytes> head = source.head();
  if (!head) return head.error();
  image.head = head->view();
  std::uint64_t offset = sizes.head.size();
  std::vector<std::uint64_t> group_sizes;
  for (const std::string& group : sizes.groups) {
    const Result<Bytes> bytes = source.group(static_cast<std::uint32_t>(image.groups.size()), offset, group.size());
    if (!bytes) return bytes.error();
    image.groups.emplace_back(bytes->view());
    group_sizes.push_back(group.size());
    offset += group.size();
  }
  if (const Status whole = source.check(sizes.head.size(), group_sizes); !whole) return whole.error();
  return image;
}

}  // namespace kiln::test
