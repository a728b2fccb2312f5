// SPDX-License-Identifier: Apache-2.0
// Other releases read the files that this release writes, so equal values must give equal bytes in all releases. A
// format change needs a new version and a new line here.
#include <gtest/gtest.h>

#include "cache/build_history_format.hpp"
#include "cache/entry_format.hpp"
#include "cache/hint_format.hpp"
#include "cache/usage_format.hpp"
#include "support/fixtures/artifacts.hpp"

namespace kiln::test {
namespace {

TEST(StoreFormats, EntryMatchesGolden) {
  const std::string head = encode_entry_header(key_number(1), artifact_of(key_number(1), 100));
  EXPECT_EQ(sha256(head).hex(), "71e6d53984bd26cde59cecd0e56c72ec51ed12c54da0a3851da0049148cee3c0");
}

TEST(StoreFormats, HintsMatchGolden) {
  const std::string_view dependency_sets[] = {"one closure", "another"};
  EXPECT_EQ(sha256(encode_hints(request_number(1), dependency_sets)).hex(),
            "ecc1e2abf74a1fe9153e861859b86344ed7b1316762ef37b1d37b9353a264c83");
}

TEST(StoreFormats, HistoryMatchesGolden) {
  Recipe recipe{
      Unit::cuda("scale", "source").with_option("-lineinfo").with_entry("scale<float>").with_header("a.cuh", "int a;"),
      Target::sm(90),
      {"nvrtc", "13.0.88", "/usr/lib/libnvrtc.so.13", sha256("a library"), {{"NVRTC_APPEND_FLAGS", "-G"}}},
      "/somewhere"};
  const Build build = Build::of(recipe, key_number(1), 250, std::chrono::nanoseconds(1'234'567));
  EXPECT_EQ(sha256(encode(UnitHistory{"cuda", "scale", {build}})).hex(),
            "a1eba5f6a2ccf571e395127a7359c1f698255353d5abe1fbe1593854f0c23839");
}

TEST(StoreFormats, JournalMatchesGolden) {
  const std::string journal = encode_usage_head(std::chrono::nanoseconds(1'234'567)) + encode_usage_record(-4096);
  EXPECT_EQ(sha256(journal).hex(), "76acf3c6b410769f38bdb5c0f38797b6675ae3473426840a23250b005f93d570");
}

}  // namespace
}  // namespace kiln::test
