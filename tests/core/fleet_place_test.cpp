// SPDX-License-Identifier: Apache-2.0
#include "core/fleet_place.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace kiln {
namespace {

TEST(FleetPlace, EveryRequestOfAQueueIsTakenOnce) {
  for (const double part : {0.0, 0.3, 0.5, 0.999}) {
    const FleetPlace place(part);
    std::set<std::size_t> taken;
    for (std::size_t n = 0; n < 100; ++n) taken.insert(place.nth(100, n));
    EXPECT_EQ(taken.size(), 100U) << part;
    EXPECT_EQ(*taken.rbegin(), 99U) << part;
  }
}

TEST(FleetPlace, StartsAtItsPartOfTheQueue) {
  const FleetPlace place(0.6);
  EXPECT_EQ(place.first(0), 0U);
  EXPECT_EQ(place.first(1), 0U);
  EXPECT_EQ(place.first(10), 6U);
  std::vector<std::size_t> order;
  for (std::size_t n = 0; n < 10; ++n) order.push_back(place.nth(10, n));
  EXPECT_EQ(order, (std::vector<std::size_t>{6, 7, 8, 9, 3, 4, 5, 1, 2, 0}));
}

TEST(FleetPlace, IsStablePerHostAndSpreadsHosts) {
  EXPECT_EQ(FleetPlace::of_host("node7").first(100'000), FleetPlace::of_host("node7").first(100'000));
  std::set<std::size_t> first;
  for (int host = 0; host < 1000; ++host) first.insert(FleetPlace::of_host("node" + std::to_string(host)).first(100));
  EXPECT_EQ(first.size(), 100U);
}

}  // namespace
}  // namespace kiln
