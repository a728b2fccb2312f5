#pragma once

#include <cstdint>
#include <string>

#include <kiln/artifact.hpp>

#include "base/hash.hpp"
#include "core/closure.hpp"

namespace kiln::test {

inline Key key_number(std::uint64_t number) { return {sha256("test key " + std::to_string(number))}; }
inline RequestKey request_number(std::uint64_t number) { return {sha256("test request " + std::to_string(number))}; }

/// Bytes that can be told from the key alone, so that a reader knows whether it got the right ones.
inline std::string payload_of(const Key& key, std::size_t size) {
  std::string bytes(size, '\0');
  std::uint64_t state = std::hash<Key>()(key) | 1;
  for (char& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<char>(state);
  }
  return bytes;
}

inline Artifact artifact_of(const Key& key, std::size_t size, double cost_ms = 100) {
  Artifact artifact;
  artifact.bytes = Bytes::of(payload_of(key, size));
  artifact.target = Target::sm(80);
  artifact.entries = {{"scale<float>", "_Z5scaleIfEvPT_S0_i"}, {"add", "add"}};
  artifact.about = {"unit of a test", "nvrtc 13.0.88", cost_ms, "a warning\n"};
  return artifact;
}

inline bool same(const Artifact& a, const Artifact& b) {
  return a.bytes == b.bytes && a.target == b.target && a.entries == b.entries && a.about.unit == b.about.unit &&
         a.about.compiler == b.about.compiler && a.about.cost_ms == b.about.cost_ms && a.about.log == b.about.log;
}

/// A closure that differs from that of any other number.
inline Closure closure_number(std::uint64_t number, std::size_t files = 3) {
  Closure closure;
  for (std::size_t i = 0; i < files; ++i) {
    Closure::Item item;
    item.root = static_cast<std::uint16_t>(i % 2);
    item.name = "folder/header_" + std::to_string(i) + ".cuh";
    item.digest = sha256(std::to_string(number) + "/" + std::to_string(i));
    closure.items.push_back(item);
  }
  return closure;
}

}  // namespace kiln::test
