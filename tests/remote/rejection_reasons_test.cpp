// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "events/metrics.hpp"
#include "remote/entry_verifier.hpp"
#include "trust/policy.hpp"

namespace kiln {
namespace {

bool is_counted(std::string_view word) {
  return std::find(Metrics::kRejectionReasons.begin(), Metrics::kRejectionReasons.end() - 1, word) !=
         Metrics::kRejectionReasons.end() - 1;
}

// The metrics module is below the modules that reject entries, so it has its own list of the reasons.
TEST(RejectionReasons, EachHasItsOwnMetricLabel) {
  std::size_t words = 0;
  for (int i = 0; i <= static_cast<int>(RejectReason::HintUnsafePath); ++i) {
    const auto fault = static_cast<RejectReason>(i);
    if (fault == RejectReason::Untrusted) continue;  // the policy's reason is reported instead
    EXPECT_TRUE(is_counted(to_string(fault))) << to_string(fault);
    ++words;
  }
  for (int i = 0; i <= static_cast<int>(TrustError::Reason::ExternalCode); ++i) {
    const auto reason = static_cast<TrustError::Reason>(i);
    EXPECT_TRUE(is_counted(to_string(reason))) << to_string(reason);
    ++words;
  }
  EXPECT_EQ(words + 1, Metrics::kRejectionReasons.size()) << "the metrics have other reasons";
}

}  // namespace
}  // namespace kiln
