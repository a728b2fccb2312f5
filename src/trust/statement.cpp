// SPDX-License-Identifier: Apache-2.0
#include "trust/statement.hpp"

#include <algorithm>

#include "base/codec.hpp"

namespace kiln {
namespace {

constexpr std::size_t kMaxNameSpaceLength = 64;

bool is_namespace_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '/';
}

}  // namespace

std::string short_id(const KeyId& key) { return key.hex().substr(0, 16); }

std::string Statement::encode(const KeyId& key) const {
  return BinaryWriter()
      .text("kiln statement 1")
      .text(subject)
      .text(name_space)
      .u64(epoch)
      .digest(digest)
      .digest(key.digest)
      .bytes();
}

bool is_name_space(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameSpaceLength) return false;
  if (!std::all_of(text.begin(), text.end(), is_namespace_char)) return false;
  return text.front() != '/' && text.back() != '/' && text.find("//") == std::string_view::npos;
}

}  // namespace kiln
