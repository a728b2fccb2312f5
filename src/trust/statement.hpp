#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <kiln/key.hpp>

namespace kiln {

using KeyId = TypedDigest<struct KeyIdTag>;  ///< SHA-256 of a public key

/// Its first 16 digits, which is what people see: enough to tell their keys apart, short enough to read out.
std::string short_id(const KeyId& key);

/// The only thing that is ever signed: for this subject, in this namespace, as of this epoch, the content is this.
/// A value.
struct Statement {
  std::string subject;  ///< what the digest is of: "kiln bundle 1"; a statement about one thing is none about another
  std::string name_space;   ///< who speaks: "acme/vision"
  std::uint64_t epoch = 0;  ///< grows; an older one may be refused
  Digest digest;

  /// The bytes that a key signs. The key's id is in them too. docs/trust.md has the grammar.
  std::string encode(const KeyId& key) const;
};

/// Lower-case letters, digits and `-_./`, at most 64 characters, no empty part between slashes.
bool is_name_space(std::string_view text);

}  // namespace kiln
