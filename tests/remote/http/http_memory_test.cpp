// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "base/hash.hpp"
#include "remote/http/http_object_store.hpp"
#include "remote/http/shared_multi.hpp"
#include "support/fakes/failing_malloc.hpp"
#include "support/servers/nginx_object_stores.hpp"

namespace kiln::test {
namespace {

constexpr ObjectStore::Bucket kBucket = ObjectStore::Bucket::Cas;
constexpr std::chrono::seconds kTimeout{5};

/// A server with one object, and a store on it.
class HttpMemory : public testing::Test {
 protected:
  HttpMemory() {
    write_text(nginx_.data() + '/' + to_string(kBucket) + '/' + name_.hex(), body_);
    options_ = options_for(nginx_);
    write_secret(directory_.path("token"), "a-token-that-is-longer-than-a-short-string");
    options_.token_file = directory_.path("token");
    store_ = open_http_object_store(options_).value();
  }
  /// Returns whether a read gets the object.
  bool reads() {
    const auto found = store_->read(kBucket, name_, 1 << 20, kTimeout);
    return found && *found && (*found)->view() == body_;
  }
  /// Reads while the given allocation fails. Returns whether an allocation failed.
  bool read_without_memory(std::uint64_t allocation) {
    Heap::fail_at(allocation, Heap::Mode::Once);
    try {
      (void)store_->read(kBucket, name_, 1 << 20, kTimeout);
    } catch (const std::bad_alloc&) {
      // Modules let it pass.
    }
    return Heap::give_back() != 0;
  }

  Nginx nginx_;
  TemporaryDirectory directory_;
  HttpOptions options_;
  const std::string body_ = std::string(100'000, 'a');
  const Digest name_ = sha256("object");
  std::unique_ptr<ObjectStore> store_;
};

TEST_F(HttpMemory, EachFailedAllocationOfTheFirstRequestFailsOneRequestOnly) {
  ASSERT_TRUE(reads());  // loads libcurl
  std::uint64_t failed = 0;
  do {
    store_ = open_http_object_store(options_).value();
    ++failed;
    ASSERT_LT(failed, 10'000u);
  } while (read_without_memory(failed) && reads());
  EXPECT_TRUE(reads()) << "after allocation " << failed;
  EXPECT_GT(failed, 20u);
}

TEST_F(HttpMemory, FailedRequestsGiveTheirHandlesBack) {
  ASSERT_TRUE(reads());
  std::uint64_t failed = 1;
  for (; read_without_memory(failed); ++failed) {
    // More often than a client has handles.
    for (std::size_t i = 0; i < SharedMulti::kMaxConnections; ++i) (void)read_without_memory(failed);
    ASSERT_TRUE(reads()) << "after allocation " << failed;
  }
  EXPECT_GT(failed, 5u);
}

// Any caller moves the data of the others, so an allocation for one can fail on the thread of another.
TEST_F(HttpMemory, CallersWithoutMemoryDoNotBlockEachOther) {
  ASSERT_TRUE(reads());
  std::atomic<bool> stop{false};
  std::jthread other([&] {
    while (!stop) {
      try {
        (void)reads();
      } catch (const std::bad_alloc&) {
        // Its own request failed.
      }
    }
  });
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t number = 1; number <= 40; ++number) (void)read_without_memory(number);
  }
  stop = true;
  other.join();
  EXPECT_TRUE(reads());
}

}  // namespace
}  // namespace kiln::test
