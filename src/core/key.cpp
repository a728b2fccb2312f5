#include <kiln/key.hpp>

#include "base/codec.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

// Each begins with a text that no other hash of kiln's begins with.
Digest foreign_digest(std::string_view domain, std::string_view system, std::string_view key) {
  Writer out;
  out.text(domain).text(system).text(key);
  return sha256(out.bytes());
}

}  // namespace

template <>
RequestKey RequestKey::foreign(std::string_view system, std::string_view key) {
  return {foreign_digest("kiln foreign request 1", system, key)};
}

template <>
Key Key::foreign(std::string_view system, std::string_view key) {
  return {foreign_digest("kiln foreign 1", system, key)};
}

}  // namespace kiln
