// SPDX-License-Identifier: Apache-2.0
// Searches arbitrary bytes for rails, as `kiln audit --source` does in a source. The first byte selects the language.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "analysis/source/rail_scan.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  using namespace kiln::source;
  const Language language = data[0] == '#' ? Language::Python : Language::Cuda;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Structure source = language == Language::Cuda ? structure_of_cuda(text) : structure_of_python(text);
  kiln::fuzz::require(source.places.size() == source.tokens.size(), "each token has a place");
  for (const Place& place : source.places) {
    kiln::fuzz::require(place.function < source.functions.size(), "each token is in a function of the source");
  }
  for (const TokenRange& range : source.statements) {
    kiln::fuzz::require(range.first < range.end && range.end <= source.tokens.size(), "a statement has tokens");
  }
  const FileScan scan = scan_source(text, language, {{"refine", "k"}, {"spatial.sjoin", "sum"}});
  std::set<std::pair<std::size_t, Rail>> places;
  for (const Hit& hit : scan.hits) {
    kiln::fuzz::require(hit.line > 0 && !hit.text.empty(), "a hit has a line and its text");
    kiln::fuzz::require(places.insert({hit.line, hit.rail}).second, "a line has one hit per rail");
    kiln::fuzz::require(hit.rail != Rail::AllocationInLoop || hit.loops > 0,
                        "an allocation outside of loops is no hit");
    kiln::fuzz::require(hit.text.size() <= 170, "the text of a hit is short");
  }
  return 0;
}
