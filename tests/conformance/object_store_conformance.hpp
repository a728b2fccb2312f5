// SPDX-License-Identifier: Apache-2.0
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
#include "remote/object_store.hpp"
#include "support/fixtures/artifacts.hpp"

namespace kiln::test {

/// Requirements of every `ObjectStore` implementation. An implementation instantiates the suite with its own harness:
///
///   INSTANTIATE_TEST_SUITE_P(Directory, ObjectStoreConformance,
///                            testing::Values(ObjectStoreHarness{"directory", &make_directory_setup}));
class ObjectStoreSetup {
 public:
  virtual ~ObjectStoreSetup() = default;
  /// Opens an object store at the location of this setup. Each one sees the objects that the others wrote.
  virtual std::unique_ptr<ObjectStore> open() = 0;
};

struct ObjectStoreHarness {
  std::string name;
  std::function<std::unique_ptr<ObjectStoreSetup>()> make;
  /// False for locations that cannot list their objects.
  bool lists = true;

  friend std::ostream& operator<<(std::ostream& out, const ObjectStoreHarness& harness) { return out << harness.name; }
};

class ObjectStoreConformance : public testing::TestWithParam<ObjectStoreHarness> {
 protected:
  using Bucket = ObjectStore::Bucket;
  static constexpr std::chrono::seconds kLimit{10};
  static constexpr std::uint64_t kMaximum = 4 << 20;

  void SetUp() override {
    setup_ = GetParam().make();
    object_store_ = setup_->open();
  }
  static Digest name(std::uint64_t number) { return sha256("a name " + std::to_string(number)); }
  static std::string body(std::uint64_t number, std::size_t size) { return payload_of(key_number(number), size); }
  void put(Bucket bucket, const Digest& digest, const std::string& text) {
    const Status written = object_store_->write(bucket, digest, {text}, kLimit);
    ASSERT_TRUE(written.has_value()) << written.error().message;
  }
  void expect(Bucket bucket, const Digest& digest, const std::string& text) {
    const auto found = object_store_->read(bucket, digest, kMaximum, kLimit);
    ASSERT_TRUE(found.has_value()) << found.error().message;
    ASSERT_TRUE(found->has_value());
    // Not EXPECT_EQ, which would print a megabyte of bytes.
    EXPECT_TRUE((*found)->view() == text);
  }
  void expect_absent(Bucket bucket, const Digest& digest) {
    const auto found = object_store_->read(bucket, digest, kMaximum, kLimit);
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_FALSE(found->has_value());
  }

  std::unique_ptr<ObjectStoreSetup> setup_;
  std::unique_ptr<ObjectStore> object_store_;
};

TEST_P(ObjectStoreConformance, MissingObjectIsNoError) {
  expect_absent(Bucket::ActionCache, name(1));
  expect_absent(Bucket::Cas, name(1));
}

TEST_P(ObjectStoreConformance, ObjectIsReadUnderItsNameAndBucketOnly) {
  put(Bucket::ActionCache, name(1), "an action");
  put(Bucket::Cas, name(2), "a content");
  expect(Bucket::ActionCache, name(1), "an action");
  expect(Bucket::Cas, name(2), "a content");
  expect_absent(Bucket::Cas, name(1));
  expect_absent(Bucket::ActionCache, name(2));
}

TEST_P(ObjectStoreConformance, PartsAreConcatenated) {
  const std::string large = body(1, 100'000);
  ASSERT_TRUE(object_store_->write(Bucket::ActionCache, name(1), {"head", "", large, "tail"}, kLimit).has_value());
  expect(Bucket::ActionCache, name(1), "head" + large + "tail");
}

TEST_P(ObjectStoreConformance, ObjectsOfAnyContentAndSizeRoundTrip) {
  for (const std::size_t size : {0, 1, 4095, 4096, 65'536, 1'100'000}) {
    put(Bucket::Cas, name(size), body(size, size));
    expect(Bucket::Cas, name(size), body(size, size));
  }
}

TEST_P(ObjectStoreConformance, WriteReplacesObject) {
  put(Bucket::ActionCache, name(1), "a long first body");
  put(Bucket::ActionCache, name(1), "a second");
  expect(Bucket::ActionCache, name(1), "a second");
}

TEST_P(ObjectStoreConformance, ReadEnforcesSizeLimit) {
  put(Bucket::Cas, name(1), body(1, 70'000));
  const auto whole = object_store_->read(Bucket::Cas, name(1), 70'000, kLimit);
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  EXPECT_EQ((*whole)->size(), 70'000u);
  for (const std::uint64_t maximum : {0, 1, 69'999}) {
    const auto longer = object_store_->read(Bucket::Cas, name(1), maximum, kLimit);
    ASSERT_FALSE(longer.has_value());
    EXPECT_EQ(longer.error().code, Code::Corrupt);
  }
  // The object store stays usable.
  expect(Bucket::Cas, name(1), body(1, 70'000));
}

TEST_P(ObjectStoreConformance, MissingObjectCanBeReadWithZeroLimit) {
  const auto found = object_store_->read(Bucket::Cas, name(1), 0, kLimit);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_FALSE(found->has_value());
}

TEST_P(ObjectStoreConformance, RemovedObjectIsMissingAndRemovingAgainIsNoError) {
  put(Bucket::ActionCache, name(1), "an action");
  put(Bucket::ActionCache, name(2), "another");
  ASSERT_TRUE(object_store_->remove(Bucket::ActionCache, name(1), kLimit).has_value());
  expect_absent(Bucket::ActionCache, name(1));
  expect(Bucket::ActionCache, name(2), "another");
  const Status again = object_store_->remove(Bucket::ActionCache, name(1), kLimit);
  EXPECT_TRUE(again.has_value()) << again.error().message;
  EXPECT_TRUE(object_store_->remove(Bucket::Cas, name(3), kLimit).has_value());
}

TEST_P(ObjectStoreConformance, ListReturnsAllObjectsOfBucketWithSizes) {
  if (!GetParam().lists) {
    const auto rejected = object_store_->list(Bucket::ActionCache, kLimit);
    ASSERT_FALSE(rejected.has_value());
    EXPECT_EQ(rejected.error().code, Code::Unsupported);
    return;
  }
  const auto before = object_store_->list(Bucket::Cas, kLimit);
  ASSERT_TRUE(before.has_value()) << before.error().message;
  EXPECT_TRUE(before->empty());
  put(Bucket::Cas, name(1), body(1, 100));
  put(Bucket::Cas, name(2), body(2, 20'000));
  put(Bucket::ActionCache, name(3), "not in this bucket");
  auto listed = object_store_->list(Bucket::Cas, kLimit);
  ASSERT_TRUE(listed.has_value()) << listed.error().message;
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

TEST_P(ObjectStoreConformance, InstancesAtOneLocationShareObjects) {
  put(Bucket::ActionCache, name(1), "an action");
  object_store_ = setup_->open();
  expect(Bucket::ActionCache, name(1), "an action");
}

TEST_P(ObjectStoreConformance, ProbeSucceeds) {
  const Status probed = object_store_->probe(kLimit);
  EXPECT_TRUE(probed.has_value()) << probed.error().message;
}

TEST_P(ObjectStoreConformance, ReadersSeeCompleteObjectsDuringConcurrentReplacement) {
  const std::string bodies[] = {std::string(50'000, 'a'), std::string(80'000, 'b')};
  put(Bucket::ActionCache, name(1), bodies[0]);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 15; ++i) {
        if (thread < 2) {
          if (!object_store_->write(Bucket::ActionCache, name(1), {bodies[(thread + i) % 2]}, kLimit)) ++wrong;
          continue;
        }
        const auto found = object_store_->read(Bucket::ActionCache, name(1), kMaximum, kLimit);
        if (!found || !*found || ((*found)->view() != bodies[0] && (*found)->view() != bodies[1])) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(ObjectStoreConformance, HasDescription) { EXPECT_FALSE(object_store_->describe().empty()); }

}  // namespace kiln::test
