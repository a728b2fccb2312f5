// Any bytes as the description of a precompiled header; and as a source whose leading directives are looked for.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/codec.hpp"
#include "base/hash.hpp"
#include "compile/pch_shelf.hpp"
#include "compile/source_text.hpp"
#include "fuzz_check.hpp"

namespace {

constexpr std::size_t kKey = 8 + 4;
constexpr std::size_t kHost = kKey + 32;

kiln::Digest key_of(std::string_view file) {
  kiln::Digest key;
  if (file.size() >= kHost) std::memcpy(key.bytes.data(), file.data() + kKey, key.bytes.size());
  return key;
}

// The same with this host's mark and a right checksum, so that what lies before it is reached.
std::string sealed(std::string file) {
  if (file.size() < kHost + 32 + 8) return file;
  const std::string ours = kiln::encode_pch({}, "here", {});
  file.replace(kHost, 32, ours, kHost, 32);
  kiln::Writer sum;
  sum.u64(kiln::xxh3(kiln::as_bytes(std::string_view(file).substr(0, file.size() - 8))));
  return file.replace(file.size() - 8, 8, sum.bytes());
}

void check(const std::string& file) {
  const auto pch = kiln::decode_pch(file, key_of(file), "here");
  if (!pch) return;
  const std::string again = kiln::encode_pch(key_of(file), "here", *pch);
  kiln::fuzz::require(again.size() == file.size(), "what was read takes as much when it is written");
  const auto twice = kiln::decode_pch(again, key_of(file), "here");
  kiln::fuzz::require(twice.ok() && twice->closure == pch->closure && twice->size == pch->size,
                      "a description can be read again");
}

void check_source(std::string_view source) {
  const std::string_view start = kiln::leading_directives(source);
  kiln::fuzz::require(start.empty() || start.data() == source.data(), "they are the start of the source");
  kiln::fuzz::require(kiln::leading_directives(start) == start, "leading directives are their own");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  check(input);
  check(sealed(input));
  check_source(input);
  return 0;
}
