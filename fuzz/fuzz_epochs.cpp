// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as the file of epochs that a machine has seen. Reads no file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bundle/epoch_memory.hpp"
#include "fuzz_check.hpp"
#include "trust/statement.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto epochs = kiln::decode_epochs(file);
  if (!epochs) {
    kiln::fuzz::require(!epochs.error().message.empty(), "an error has a message");
    return 0;
  }
  kiln::fuzz::require(epochs->size() <= kiln::EpochMemory::kMaxNamespaces, "at most kMaxNamespaces namespaces");
  for (const auto& [name_space, epoch] : *epochs) {
    kiln::fuzz::require(kiln::is_name_space(name_space), "only namespaces");
  }
  kiln::fuzz::require(kiln::encode_epochs(*epochs) == file, "the encoding is unique");
  return 0;
}
