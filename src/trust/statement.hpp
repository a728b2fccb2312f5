// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <kiln/key.hpp>

namespace kiln {

using KeyId = TypedDigest<struct KeyIdTag>;  ///< SHA-256 of a public key

/// Returns the first 16 digits of a key id, as shown in messages: enough to distinguish keys, short enough to read out.
std::string short_id(const KeyId& key);

/// The only kind of content that is signed: a subject, a namespace, an epoch and the digest of the content. A value
/// type.
struct Statement {
  std::string subject;  ///< the type of the content, such as "kiln bundle 1"; a statement about one subject is invalid
                        ///< for another
  std::string name_space;   ///< the signer's namespace, such as "acme/vision"
  std::uint64_t epoch = 0;  ///< increases; a policy can reject older ones
  Digest digest;

  /// Returns the bytes that a key signs, which include the id of the key (docs/internals/formats/trust.md).
  std::string encode(const KeyId& key) const;
};

/// Prefix of the subjects of statements about code from another system instead of a kiln worker. A reader sees it
/// before fetching any content.
inline constexpr std::string_view kExternalSubject = "kiln foreign ";

/// Returns whether a text is a namespace: lower-case letters, digits and `-_./`, at most 64 characters, no empty part
/// between slashes.
bool is_name_space(std::string_view text);

}  // namespace kiln
