// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "base/codec.hpp"
#include "base/hash.hpp"
#include "cache/entry_format.hpp"
#include "fuzz_check.hpp"

namespace {

// Returns the input's lengths and metadata with correct checksums.
std::string sealed(std::string file) {
  using kiln::as_bytes;
  constexpr std::size_t kHead = kiln::EntryHeader::kSize;
  if (file.size() < kHead) return file;
  std::uint32_t metadata_size;
  std::memcpy(&metadata_size, file.data() + 12, sizeof metadata_size);
  kiln::EntryHeader header;
  header.metadata_size = metadata_size;
  const std::string_view view = file;
  if (header.payload_offset() <= file.size()) {
    kiln::BinaryWriter sums;
    sums.u64(kiln::xxh3(as_bytes(view.substr(kHead, metadata_size))));
    sums.u64(kiln::xxh3(as_bytes(view.substr(header.payload_offset()))));
    file.replace(56, 16, sums.bytes());
  }
  kiln::BinaryWriter sum;
  sum.u64(kiln::xxh3(as_bytes(std::string_view(file).substr(0, kHead - 8))));
  file.replace(kHead - 8, 8, sum.bytes());
  return file;
}

void check(const std::string& file) {
  const auto header = kiln::decode_entry_header(kiln::as_bytes(file));
  if (!header) return;
  const auto artifact = kiln::decode_entry(header->key, kiln::Bytes::copy_of(file));
  if (!artifact) return;
  const std::string again = kiln::encode_entry_header(header->key, *artifact) + std::string(artifact->bytes.view());
  kiln::fuzz::require(again == file, "an entry round-trips");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return kiln::fuzz::as_it_is_and_sealed(data, size, check, sealed);
}
