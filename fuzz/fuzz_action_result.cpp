// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "base/hash.hpp"
#include "fuzz_check.hpp"
#include "remote/action_result.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = kiln::ActionResult::decode({data, size});
  if (!read) return 0;
  kiln::fuzz::require(read->files.size() <= 64, "an action result has at most 64 files");
  // Skipped fields are not written again, so the output is no longer than the input.
  const std::string written = read->encode();
  const auto again = kiln::ActionResult::decode(kiln::as_bytes(written));
  kiln::fuzz::require(again.has_value(), "an encoded action result can be decoded");
  kiln::fuzz::require(again->encode() == written, "encoding is stable");
  kiln::fuzz::require(again->stdout_raw == read->stdout_raw && again->files.size() == read->files.size(),
                      "decoding keeps the content");
  for (std::size_t i = 0; i < read->files.size(); ++i) {
    kiln::fuzz::require(again->files[i].contents == read->files[i].contents, "decoding keeps the contents of files");
  }
  return 0;
}
