// SPDX-License-Identifier: Apache-2.0
#include "remote/lease_record.hpp"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

const LeaseRecord kRow{"node7:4242:abc", 5000ms, 17};

TEST(LeaseRecord, RoundTrips) {
  const auto row = LeaseRecord::parse(kRow.text());
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->owner, kRow.owner);
  EXPECT_EQ(row->lease, kRow.lease);
  EXPECT_EQ(row->renewals, kRow.renewals);
  EXPECT_EQ(kRow.text(), "kiln-lease 1\nowner node7:4242:abc\nlease_ms 000000005000\nrenewals 000000000017\n");
}

TEST(LeaseRecord, LengthIsUnchangedByRenewal) {
  LeaseRecord later = kRow;
  for (const std::uint64_t renewals : {0ULL, 1ULL, 999'999'999'999ULL, 1'000'000'000'000ULL, ~0ULL}) {
    later.renewals = renewals;
    later.lease = std::chrono::milliseconds::max();
    EXPECT_EQ(later.text().size(), kRow.text().size());
    EXPECT_TRUE(LeaseRecord::parse(later.text()).has_value());
  }
}

TEST(LeaseRecord, CorruptTextIsRejectedOrRoundTrips) {
  const std::string text = kRow.text();
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(LeaseRecord::parse(std::string_view(text).substr(0, i)).has_value()) << i;
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = text;
      changed[i] = static_cast<char>(byte);
      const auto row = LeaseRecord::parse(changed);
      EXPECT_TRUE(!row || row->text() == changed) << i;
    }
  }
  EXPECT_FALSE(LeaseRecord::parse(text + "x").has_value());
}

TEST(LeaseRecord, OtherVersionIsRejected) {
  for (const char* head : {"kiln-lease 0\n", "kiln-lease 2\n", "kiln-lease 10\n", "kiln-lease\n", "kiln-cache 1\n"}) {
    EXPECT_FALSE(LeaseRecord::parse(head + kRow.text().substr(13)).has_value()) << head;
  }
}

TEST(LeaseRecord, OwnersAreValidInFileNames) {
  EXPECT_TRUE(LeaseRecord::is_valid_owner(std::string(128, 'a')));
  for (const std::string& owner : {std::string(), std::string(129, 'a'), std::string("a/b"), std::string("a b"),
                                   std::string("a\nb"), std::string("a\0b", 3), std::string("\xff")}) {
    EXPECT_FALSE(LeaseRecord::is_valid_owner(owner)) << owner;
  }
}

}  // namespace
}  // namespace kiln::test
