// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as the description of a precompiled header, as a verdict on a library, and as a source that is
// searched for leading directives.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/source_scan.hpp"
#include "base/codec.hpp"
#include "base/hash.hpp"
#include "fuzz_check.hpp"
#include "worker/pch_cache.hpp"
#include "worker/pch_check.hpp"

namespace {

constexpr std::size_t kKey = 8 + 4;
constexpr std::size_t kHost = kKey + 32;

kiln::Digest key_of(std::string_view file) {
  kiln::Digest key;
  if (file.size() >= kHost) std::memcpy(key.bytes.data(), file.data() + kKey, key.bytes.size());
  return key;
}

// Returns the same file with this host's id and a correct checksum, so that the parser reaches the content before it.
std::string sealed(std::string file) {
  if (file.size() < kHost + 32 + 8) return file;
  const std::string ours = kiln::encode_pch({}, "here", {});
  file.replace(kHost, 32, ours, kHost, 32);
  kiln::BinaryWriter sum;
  sum.u64(kiln::xxh3(kiln::as_bytes(std::string_view(file).substr(0, file.size() - 8))));
  return file.replace(file.size() - 8, 8, sum.bytes());
}

void check(const std::string& file) {
  const auto pch = kiln::decode_pch(file, key_of(file), "here");
  if (!pch) return;
  const std::string again = kiln::encode_pch(key_of(file), "here", *pch);
  kiln::fuzz::require(again.size() == file.size(), "encoding keeps the size");
  const auto twice = kiln::decode_pch(again, key_of(file), "here");
  kiln::fuzz::require(twice.has_value() && twice->dependency_set == pch->dependency_set && twice->size == pch->size &&
                          twice->log == pch->log,
                      "a description round-trips");
}

void check_verdict(const std::string& file) {
  const auto verdict = kiln::decode_verdict(file, key_of(file), "here");
  if (!verdict) return;
  kiln::fuzz::require(kiln::encode_verdict(key_of(file), "here", *verdict) == file, "a verdict round-trips");
}

void check_source(std::string_view source) {
  const std::string_view start = kiln::leading_directives(source);
  kiln::fuzz::require(start.empty() || start.data() == source.data(), "leading directives are a prefix of the source");
  kiln::fuzz::require(kiln::leading_directives(start) == start, "leading directives are idempotent");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  check(input);
  check(sealed(input));
  check_verdict(input);
  check_verdict(sealed(input));
  check_source(input);
  return 0;
}
