// SPDX-License-Identifier: Apache-2.0
#include "session/pending_units.hpp"
#include "core/unit_access.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace kiln {
namespace {

Unit generated(std::size_t number) {
  std::string source = "// kernel " + std::to_string(number) + '\n';
  source.resize(2000, ' ');
  return Unit::cuda("generated.cu", std::move(source));
}

TEST(WaitingUnits, AreReturnedInRequestOrder) {
  WaitingUnits waiting;
  const Unit first = Unit::cuda("a.cu", "a");
  EXPECT_TRUE(waiting.add(first));
  EXPECT_FALSE(waiting.add(first));
  EXPECT_TRUE(waiting.add(Unit::opencl("b.cl", "b")));
  EXPECT_TRUE(waiting.add(Unit::cuda("c.cu", "c")));
  const Units due = waiting.of_kinds({"cuda"});
  waiting.remove_kinds({"cuda"});
  ASSERT_EQ(due.size(), 2U);
  EXPECT_EQ(due[0].name(), "a.cu");
  EXPECT_EQ(due[1].name(), "c.cu");
  EXPECT_EQ(waiting.size(), 1U);
  EXPECT_TRUE(waiting.add(first)) << "it is no longer pending";
}

TEST(WaitingUnits, RemoveHashesOnlySimilarUnits) {
  constexpr std::size_t kWaiting = 20'000;
  WaitingUnits waiting;
  Units units;
  for (std::size_t i = 0; i < kWaiting; ++i) units.push_back(generated(i));
  for (const Unit& unit : units) waiting.add(unit);
  for (std::size_t i = 0; i < 100; ++i) waiting.remove_equal(generated(i));
  EXPECT_EQ(waiting.size(), kWaiting - 100);
  std::size_t hashed = 0;
  for (const Unit& unit : units) hashed += UnitAccess::identity_if_computed(unit) != nullptr ? 1 : 0;
  std::printf("figure: to take 100 units out of %zu, %zu were hashed\n", kWaiting, hashed);
  EXPECT_EQ(hashed, 100U);
}

}  // namespace
}  // namespace kiln
