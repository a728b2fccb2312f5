// SPDX-License-Identifier: Apache-2.0
// The primitives of examples/spatial on PoCL, which really executes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "examples/spatial_device.hpp"
#include "spatial/column.hpp"
#include "spatial/device/device_context.hpp"

namespace kiln::test {
namespace {

using runtime::Backend;

constexpr std::uint32_t kSizes[] = {0, 1, 2, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 100'000};

class SpatialPrimitives : public testing::Test {
 protected:
  template <class T>
  Buffer on_device(const std::vector<T>& values) {
    return kit_->copy_of(values.data(), values.size() * sizeof(T)).value();
  }
  template <class T>
  Buffer room_for(std::size_t count) {
    return kit_->allocate(count * sizeof(T)).value();
  }
  template <class T>
  std::vector<T> on_host(const Buffer& buffer, std::size_t count) {
    std::vector<T> values(count);
    if (count != 0) kit_->stream().download(values.data(), buffer, count * sizeof(T)).value();
    return values;
  }
  spatial::Primitives& primitives() { return kit_->primitives(); }

  const std::shared_ptr<spatial::DeviceContext> kit_ =
      spatial::DeviceContext::open(SpatialSession::shared().session(), Backend::OpenCl).value();
  std::mt19937_64 random_{42};
};

TEST_F(SpatialPrimitives, ScanComputesExclusiveSumsAndTotal) {
  for (const std::uint32_t size : kSizes) {
    std::vector<std::uint32_t> values(size);
    for (std::uint32_t& value : values) value = static_cast<std::uint32_t>(random_() % 1000);
    std::vector<std::uint32_t> expected(size + 1, 0);
    std::partial_sum(values.begin(), values.end(), expected.begin() + 1);
    const Buffer in = on_device(values);
    const Buffer offsets = room_for<std::uint32_t>(size + 1);
    const Buffer total = room_for<std::uint32_t>(1);
    ASSERT_TRUE(primitives().exclusive_scan(in, size, offsets, total).has_value());
    EXPECT_EQ(on_host<std::uint32_t>(offsets, size + 1), expected) << size;
    EXPECT_EQ(on_host<std::uint32_t>(total, 1).front(), expected.back()) << size;
  }
}

TEST_F(SpatialPrimitives, ScanCanRunInPlace) {
  const std::uint32_t size = 5000;
  std::vector<std::uint32_t> values(size + 1, 3);
  const Buffer both = on_device(values);
  const Buffer total = room_for<std::uint32_t>(1);
  ASSERT_TRUE(primitives().exclusive_scan(both, size, both, total).has_value());
  std::vector<std::uint32_t> expected(size + 1);
  for (std::uint32_t i = 0; i <= size; ++i) expected[i] = 3 * i;
  EXPECT_EQ(on_host<std::uint32_t>(both, size + 1), expected);
}

TEST_F(SpatialPrimitives, ScanSaturatesInsteadOfWrapping) {
  const std::uint32_t size = 3000;
  const std::vector<std::uint32_t> values(size, 0x01000000);
  const Buffer in = on_device(values);
  const Buffer offsets = room_for<std::uint32_t>(size + 1);
  const Buffer total = room_for<std::uint32_t>(1);
  ASSERT_TRUE(primitives().exclusive_scan(in, size, offsets, total).has_value());
  EXPECT_EQ(on_host<std::uint32_t>(total, 1).front(), UINT32_MAX);
  const auto sums = on_host<std::uint32_t>(offsets, size + 1);
  EXPECT_EQ(sums[255], 0xff000000);
  EXPECT_EQ(sums[256], UINT32_MAX);
  EXPECT_EQ(sums[size], UINT32_MAX);
}

TEST_F(SpatialPrimitives, CompactReturnsFlaggedIndicesInOrder) {
  for (const std::uint32_t size : kSizes) {
    for (const unsigned share : {0U, 1U, 50U, 100U}) {
      std::vector<std::uint8_t> flags(size);
      std::vector<std::uint32_t> expected;
      for (std::uint32_t i = 0; i < size; ++i) {
        flags[i] = random_() % 100 < share ? static_cast<std::uint8_t>(1 + random_() % 255) : 0;
        if (flags[i] != 0) expected.push_back(i);
      }
      const Buffer in = on_device(flags);
      const Buffer indices = room_for<std::uint32_t>(size);
      const Buffer chosen = room_for<std::uint32_t>(1);
      ASSERT_TRUE(primitives().compact(in, size, indices, chosen).has_value());
      ASSERT_EQ(on_host<std::uint32_t>(chosen, 1).front(), expected.size()) << size << " by " << share;
      EXPECT_EQ(on_host<std::uint32_t>(indices, expected.size()), expected) << size << " by " << share;
    }
  }
}

TEST_F(SpatialPrimitives, SortUsesGivenBits) {
  for (const std::uint32_t size : kSizes) {
    for (const unsigned bits : {1U, 8U, 9U, 27U, 64U}) {
      std::vector<std::uint64_t> keys(size);
      for (std::uint64_t& key : keys) key = random_() >> (64 - bits);
      Buffer sorted = on_device(keys);
      Buffer spare = room_for<std::uint64_t>(size);
      ASSERT_TRUE(primitives().sort(sorted, spare, size, bits).has_value());
      std::sort(keys.begin(), keys.end());
      EXPECT_EQ(on_host<std::uint64_t>(sorted, size), keys) << size << " of " << bits << " bits";
    }
  }
}

TEST_F(SpatialPrimitives, UniqueFindsRunsOfLowestBits) {
  for (const std::uint32_t size : kSizes) {
    if (size == 0) continue;
    for (const std::uint64_t distinct : {1U, 7U, 1000U}) {
      std::vector<std::uint64_t> keys(size);
      for (std::uint64_t& key : keys) key = random_() % distinct;
      std::sort(keys.begin(), keys.end());
      std::vector<std::uint32_t> expected;
      for (std::uint32_t i = 0; i < size; ++i) {
        if (i == 0 || keys[i] != keys[i - 1]) expected.push_back(i);
      }
      for (std::uint32_t i = 0; i < size; ++i) keys[i] |= random_() << 32;  // not compared
      const Buffer in = on_device(keys);
      const Buffer heads = room_for<std::uint32_t>(size + 1);
      const Buffer runs = room_for<std::uint32_t>(1);
      ASSERT_TRUE(primitives().unique(in, size, heads, runs).has_value());
      ASSERT_EQ(on_host<std::uint32_t>(runs, 1).front(), expected.size()) << size << " of " << distinct;
      expected.push_back(size);
      EXPECT_EQ(on_host<std::uint32_t>(heads, expected.size()), expected) << size << " of " << distinct;
    }
  }
}

TEST_F(SpatialPrimitives, SegmentedReduceCombinesSegmentsOfAnyLength) {
  for (const std::size_t longest : {1U, 4U, 64U, 65U, 3000U}) {
    std::vector<std::uint32_t> offsets{0};
    for (int i = 0; i < 3000 && offsets.back() < 200'000; ++i) {
      offsets.push_back(offsets.back() + static_cast<std::uint32_t>(random_() % (longest + 1)));
    }
    std::vector<double> values(offsets.back());
    for (double& value : values) value = static_cast<double>(random_() % 2001) - 1000;  // sums are exact
    const auto segments = static_cast<std::uint32_t>(offsets.size() - 1);
    std::vector<double> sums(segments, 0);
    std::vector<double> least(segments, spatial::kInfinity);
    std::vector<double> most(segments, -spatial::kInfinity);
    for (std::uint32_t segment = 0; segment < segments; ++segment) {
      for (std::uint32_t i = offsets[segment]; i < offsets[segment + 1]; ++i) {
        sums[segment] += values[i];
        least[segment] = std::min(least[segment], values[i]);
        most[segment] = std::max(most[segment], values[i]);
      }
    }
    const Buffer in = on_device(values);
    const Buffer at = on_device(offsets);
    const Buffer out = room_for<double>(segments);
    const auto reduced = [&](spatial::Reduction reduction) {
      EXPECT_TRUE(primitives().segmented_reduce(reduction, in, at, segments, out).has_value());
      return on_host<double>(out, segments);
    };
    EXPECT_EQ(reduced(spatial::Reduction::Sum), sums) << longest;
    EXPECT_EQ(reduced(spatial::Reduction::Minimum), least) << longest;
    EXPECT_EQ(reduced(spatial::Reduction::Maximum), most) << longest;
  }
}

TEST_F(SpatialPrimitives, SortIsStableForEqualBits) {
  std::vector<std::uint64_t> keys(10'000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = (std::uint64_t{i} << 8) | (random_() % 4);
  Buffer sorted = on_device(keys);
  Buffer spare = room_for<std::uint64_t>(keys.size());
  ASSERT_TRUE(primitives().sort(sorted, spare, static_cast<std::uint32_t>(keys.size()), 8).has_value());
  std::stable_sort(keys.begin(), keys.end(), [](auto a, auto b) { return (a & 0xff) < (b & 0xff); });
  EXPECT_EQ(on_host<std::uint64_t>(sorted, keys.size()), keys);
}

// More elements than 65,472 work items process with runs of the usual length.
TEST_F(SpatialPrimitives, LongArraysUseLongerRuns) {
  const std::uint32_t size = 1'200'000;
  const Buffer flags = on_device(std::vector<std::uint8_t>(size, 1));
  const Buffer numbers = room_for<std::uint32_t>(size + 1);
  const Buffer count = room_for<std::uint32_t>(1);
  ASSERT_TRUE(primitives().compact(flags, size, numbers, count).has_value());
  ASSERT_TRUE(primitives().exclusive_scan(numbers, 60'000, numbers, count).has_value());
  EXPECT_EQ(on_host<std::uint32_t>(count, 1).front(), 60'000U * 59'999 / 2);
  EXPECT_EQ(on_host<std::uint32_t>(numbers, size)[size - 1], size - 1);

  const Buffer ones = on_device(std::vector<std::uint32_t>(size, 1));
  ASSERT_TRUE(primitives().exclusive_scan(ones, size, numbers, count).has_value());
  std::vector<std::uint32_t> expected(size + 1);
  std::iota(expected.begin(), expected.end(), 0U);
  EXPECT_TRUE(on_host<std::uint32_t>(numbers, size + 1) == expected);

  std::vector<std::uint64_t> keys(4'300'000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = (i * 7919) % 256;
  Buffer sorted = on_device(keys);
  Buffer spare = room_for<std::uint64_t>(keys.size());
  ASSERT_TRUE(primitives().sort(sorted, spare, static_cast<std::uint32_t>(keys.size()), 8).has_value());
  const auto result = on_host<std::uint64_t>(sorted, keys.size());
  EXPECT_TRUE(std::is_sorted(result.begin(), result.end()));
  EXPECT_EQ(std::accumulate(result.begin(), result.end(), std::uint64_t{0}),
            std::accumulate(keys.begin(), keys.end(), std::uint64_t{0}));
}

TEST_F(SpatialPrimitives, LaunchCountDoesNotDependOnElements) {
  std::vector<std::size_t> launches;
  for (const std::uint32_t size : {100U, 100'000U}) {
    Buffer keys = on_device(std::vector<std::uint64_t>(size, 7));
    Buffer spare = room_for<std::uint64_t>(size);
    (void)SpatialSession::shared().take_events();
    ASSERT_TRUE(primitives().sort(keys, spare, size, 64).has_value());
    const auto events = SpatialSession::shared().take_events();
    launches.push_back(static_cast<std::size_t>(std::count_if(
        events.begin(), events.end(), [](const Event& event) { return event.kind == Event::Kind::Launched; })));
  }
  EXPECT_EQ(launches[0], 32U);
  EXPECT_EQ(launches[1], 32U);
}

}  // namespace
}  // namespace kiln::test
