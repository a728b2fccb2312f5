// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "base/codec.hpp"
#include "base/hash.hpp"
#include "cache/hint_format.hpp"
#include "core/dependency_set.hpp"
#include "fuzz_check.hpp"

namespace {

kiln::RequestKey owner_of(std::string_view file) {
  kiln::RequestKey owner;
  if (file.size() >= 48) std::memcpy(owner.digest.bytes.data(), file.data() + 16, 32);
  return owner;
}

// Returns the same header with a correct checksum, so that the parser reaches the rest.
std::string sealed(std::string file) {
  if (file.size() < 16) return file;
  std::uint32_t count;
  std::memcpy(&count, file.data() + 12, sizeof count);
  const std::size_t end = 48 + std::size_t{count} * 12;
  if (count > 64 || file.size() < end + 8) return file;
  kiln::BinaryWriter sum;
  sum.u64(kiln::xxh3(kiln::as_bytes(std::string_view(file).substr(0, end))));
  return file.replace(end, 8, sum.bytes());
}

void check(const std::string& file) {
  const auto head = kiln::decode_hint_head(owner_of(file), kiln::as_bytes(file));
  if (!head) return;
  std::vector<std::string_view> hints;
  bool whole = true;
  for (const kiln::HintHeader::Slot& slot : head->slots) {
    hints.push_back(kiln::hint_at(slot, kiln::as_bytes(file)));
    whole &= !hints.back().empty();
    (void)kiln::DependencySet::decode(hints.back()).has_value();
  }
  if (whole && head->file_size() == file.size()) {
    kiln::fuzz::require(kiln::encode_hints(owner_of(file), hints) == file, "hints round-trip");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return kiln::fuzz::as_it_is_and_sealed(data, size, check, sealed);
}
