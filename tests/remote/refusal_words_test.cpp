#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "observe/metrics.hpp"
#include "remote/judgement.hpp"
#include "trust/policy.hpp"

namespace kiln {
namespace {

bool is_counted(std::string_view word) {
  return std::find(Metrics::kRefusals.begin(), Metrics::kRefusals.end() - 1, word) != Metrics::kRefusals.end() - 1;
}

// The counts are below the rooms that refuse, so they have the words by heart.
TEST(RefusalWords, AreEachCountedByTheirOwnName) {
  std::size_t words = 0;
  for (int i = 0; i <= static_cast<int>(RemoteFault::HintHostile); ++i) {
    const auto fault = static_cast<RemoteFault>(i);
    if (fault == RemoteFault::Distrusted) continue;  // the policy's word is told instead
    EXPECT_TRUE(is_counted(to_string(fault))) << to_string(fault);
    ++words;
  }
  for (int i = 0; i <= static_cast<int>(Doubt::Why::CertificateExpired); ++i) {
    const auto why = static_cast<Doubt::Why>(i);
    EXPECT_TRUE(is_counted(to_string(why))) << to_string(why);
    ++words;
  }
  EXPECT_EQ(words + 1, Metrics::kRefusals.size()) << "and no other is";
}

}  // namespace
}  // namespace kiln
