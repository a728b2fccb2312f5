// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/codec.hpp"
#include "base/hash.hpp"
#include "core/cccl_envelope.hpp"
#include "fuzz_check.hpp"

namespace {

std::string sealed(std::string bytes) {
  if (bytes.size() < 8) return bytes;
  bytes.resize(bytes.size() - 8);
  return bytes + kiln::BinaryWriter().u64(kiln::xxh3(kiln::as_bytes(bytes))).bytes();
}

void check(const std::string& bytes) {
  const auto envelope = kiln::decode_cccl_envelope(bytes);
  if (!envelope) return;
  kiln::fuzz::require(kiln::encode(*envelope) == bytes, "an envelope round-trips");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return kiln::fuzz::as_it_is_and_sealed(data, size, check, sealed);
}
