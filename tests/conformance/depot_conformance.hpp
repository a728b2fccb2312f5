#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/hash.hpp"
#include "remote/depot.hpp"
#include "support/artifacts.hpp"

namespace kiln::test {

/// What every Depot promises. An implementation passes it by instantiating the suite with a harness of its own:
///
///   INSTANTIATE_TEST_SUITE_P(Directory, DepotConformance,
///                            testing::Values(DepotHarness{"directory", &make_directory_setup}));
class DepotSetup {
 public:
  virtual ~DepotSetup() = default;
  /// A depot on the place of this setup: each finds what the others wrote.
  virtual std::unique_ptr<Depot> open() = 0;
};

struct DepotHarness {
  std::string name;
  std::function<std::unique_ptr<DepotSetup>()> make;
  /// False for places that cannot say what they have.
  bool lists = true;

  friend std::ostream& operator<<(std::ostream& out, const DepotHarness& harness) { return out << harness.name; }
};

class DepotConformance : public testing::TestWithParam<DepotHarness> {
 protected:
  using Shelf = Depot::Shelf;
  static constexpr std::chrono::seconds kLimit{10};
  static constexpr std::uint64_t kMost = 4 << 20;

  void SetUp() override {
    setup_ = GetParam().make();
    depot_ = setup_->open();
  }
  static Digest name(std::uint64_t number) { return sha256("a name " + std::to_string(number)); }
  static std::string body(std::uint64_t number, std::size_t size) { return payload_of(key_number(number), size); }
  void put(Shelf shelf, const Digest& digest, const std::string& text) {
    const Status written = depot_->write(shelf, digest, {text}, kLimit);
    ASSERT_TRUE(written.ok()) << written.error().message;
  }
  void expect(Shelf shelf, const Digest& digest, const std::string& text) {
    const auto found = depot_->read(shelf, digest, kMost, kLimit);
    ASSERT_TRUE(found.ok()) << found.error().message;
    ASSERT_TRUE(found->has_value());
    // Not EXPECT_EQ: a megabyte of bytes on a terminal helps nobody.
    EXPECT_TRUE((*found)->view() == text);
  }
  void expect_absent(Shelf shelf, const Digest& digest) {
    const auto found = depot_->read(shelf, digest, kMost, kLimit);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_FALSE(found->has_value());
  }

  std::unique_ptr<DepotSetup> setup_;
  std::unique_ptr<Depot> depot_;
};

TEST_P(DepotConformance, WhatWasNeverWrittenIsAbsentAndNoError) {
  expect_absent(Shelf::Action, name(1));
  expect_absent(Shelf::Content, name(1));
}

TEST_P(DepotConformance, WhatWasWrittenComesBackUnderItsNameAndOnItsShelfAlone) {
  put(Shelf::Action, name(1), "an action");
  put(Shelf::Content, name(2), "a content");
  expect(Shelf::Action, name(1), "an action");
  expect(Shelf::Content, name(2), "a content");
  expect_absent(Shelf::Content, name(1));
  expect_absent(Shelf::Action, name(2));
}

TEST_P(DepotConformance, PartsAreJoined) {
  const std::string large = body(1, 100'000);
  ASSERT_TRUE(depot_->write(Shelf::Action, name(1), {"head", "", large, "tail"}, kLimit).ok());
  expect(Shelf::Action, name(1), "head" + large + "tail");
}

TEST_P(DepotConformance, BodiesOfEveryKindAndSizeComeBack) {
  for (const std::size_t size : {0, 1, 4095, 4096, 65'536, 1'100'000}) {
    put(Shelf::Content, name(size), body(size, size));
    expect(Shelf::Content, name(size), body(size, size));
  }
}

TEST_P(DepotConformance, WritingAgainReplacesWhatWasThere) {
  put(Shelf::Action, name(1), "a long first body");
  put(Shelf::Action, name(1), "a second");
  expect(Shelf::Action, name(1), "a second");
}

TEST_P(DepotConformance, ABodyMayBeAsLongAsAllowedAndNoLonger) {
  put(Shelf::Content, name(1), body(1, 70'000));
  const auto whole = depot_->read(Shelf::Content, name(1), 70'000, kLimit);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_EQ((*whole)->size(), 70'000u);
  for (const std::uint64_t most : {0, 1, 69'999}) {
    const auto longer = depot_->read(Shelf::Content, name(1), most, kLimit);
    ASSERT_FALSE(longer.ok());
    EXPECT_EQ(longer.error().code, Code::Corrupt);
  }
  // And it goes on working.
  expect(Shelf::Content, name(1), body(1, 70'000));
}

TEST_P(DepotConformance, WhatIsAbsentMayBeAskedForWithNothingAllowed) {
  const auto found = depot_->read(Shelf::Content, name(1), 0, kLimit);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_FALSE(found->has_value());
}

TEST_P(DepotConformance, WhatWasRemovedIsAbsentAndRemovingNothingIsNoError) {
  put(Shelf::Action, name(1), "an action");
  put(Shelf::Action, name(2), "another");
  ASSERT_TRUE(depot_->remove(Shelf::Action, name(1), kLimit).ok());
  expect_absent(Shelf::Action, name(1));
  expect(Shelf::Action, name(2), "another");
  const Status again = depot_->remove(Shelf::Action, name(1), kLimit);
  EXPECT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(depot_->remove(Shelf::Content, name(3), kLimit).ok());
}

TEST_P(DepotConformance, AListHasEverythingOnAShelfWithItsSize) {
  if (!GetParam().lists) {
    const auto refused = depot_->list(Shelf::Action, kLimit);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::Unsupported);
    return;
  }
  const auto before = depot_->list(Shelf::Content, kLimit);
  ASSERT_TRUE(before.ok()) << before.error().message;
  EXPECT_TRUE(before->empty());
  put(Shelf::Content, name(1), body(1, 100));
  put(Shelf::Content, name(2), body(2, 20'000));
  put(Shelf::Action, name(3), "not on this shelf");
  auto listed = depot_->list(Shelf::Content, kLimit);
  ASSERT_TRUE(listed.ok()) << listed.error().message;
  ASSERT_EQ(listed->size(), 2u);
  std::sort(listed->begin(), listed->end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  EXPECT_EQ((*listed)[0].name, name(1));
  EXPECT_EQ((*listed)[0].bytes, 100u);
  EXPECT_EQ((*listed)[1].name, name(2));
  EXPECT_EQ((*listed)[1].bytes, 20'000u);
  const auto age = system_clock().wall() - (*listed)[0].modified;
  EXPECT_LT(age, std::chrono::minutes(2));
  EXPECT_GT(age, std::chrono::minutes(-2));
}

TEST_P(DepotConformance, EveryDepotOnAPlaceSeesWhatAnotherWrote) {
  put(Shelf::Action, name(1), "an action");
  depot_ = setup_->open();
  expect(Shelf::Action, name(1), "an action");
}

TEST_P(DepotConformance, ItAnswersAProbe) {
  const Status probed = depot_->probe(kLimit);
  EXPECT_TRUE(probed.ok()) << probed.error().message;
}

TEST_P(DepotConformance, ReadersSeeWholeBodiesWhileWritersReplaceThem) {
  const std::string bodies[] = {std::string(50'000, 'a'), std::string(80'000, 'b')};
  put(Shelf::Action, name(1), bodies[0]);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 15; ++i) {
        if (thread < 2) {
          if (!depot_->write(Shelf::Action, name(1), {bodies[(thread + i) % 2]}, kLimit)) ++wrong;
          continue;
        }
        const auto found = depot_->read(Shelf::Action, name(1), kMost, kLimit);
        if (!found || !*found || ((*found)->view() != bodies[0] && (*found)->view() != bodies[1])) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(DepotConformance, ItHasANameForPeople) { EXPECT_FALSE(depot_->describe().empty()); }

}  // namespace kiln::test
