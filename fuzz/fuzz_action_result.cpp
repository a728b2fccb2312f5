#include <cstddef>
#include <cstdint>

#include "base/hash.hpp"
#include "fuzz_check.hpp"
#include "remote/action_result.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = kiln::ActionResult::decode({data, size});
  if (!read) return 0;
  kiln::fuzz::require(read->files.size() <= 64, "no action has more than 64 files");
  // Fields that are skipped are not written again, so what is written is no longer than what was read.
  const std::string written = read->encode();
  const auto again = kiln::ActionResult::decode(kiln::as_bytes(written));
  kiln::fuzz::require(again.ok(), "what is written can be read");
  kiln::fuzz::require(again->encode() == written, "and is written alike");
  kiln::fuzz::require(again->said == read->said && again->files.size() == read->files.size(), "and says the same");
  return 0;
}
