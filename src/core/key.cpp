// SPDX-License-Identifier: Apache-2.0
#include <kiln/key.hpp>

#include "base/codec.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

// Each hash starts with a domain text that no other hash of kiln uses.
Digest external_digest(std::string_view domain, std::string_view system, std::string_view key) {
  BinaryWriter out;
  out.text(domain).text(system).text(key);
  return sha256(out.bytes());
}

}  // namespace

template <>
RequestKey RequestKey::external(std::string_view system, std::string_view key) {
  return {external_digest("kiln foreign request 1", system, key)};
}

template <>
ArtifactKey ArtifactKey::external(std::string_view system, std::string_view key) {
  return {external_digest("kiln foreign 1", system, key)};
}

}  // namespace kiln
