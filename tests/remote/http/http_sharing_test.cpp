// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "remote/http/http_object_store.hpp"
#include "remote/http/shared_multi.hpp"
#include "support/fixtures/files.hpp"
#include "support/processes/eventually.hpp"
#include "support/servers/nginx_object_stores.hpp"

namespace kiln::test {
namespace {

constexpr ObjectStore::Bucket kBucket = ObjectStore::Bucket::Cas;
constexpr std::chrono::seconds kLong{60};
constexpr int kCallers = 32;

/// Lets 32 threads start together and read objects of different sizes. Returns the number of wrong results.
int read_at_the_same_time(ObjectStore& store) {
  const auto body_of = [](int caller) { return std::string(std::size_t(caller) * 7'000, char('a' + caller % 26)); };
  for (int caller = 0; caller < kCallers; ++caller) {
    const std::string body = body_of(caller);
    if (!store.write(kBucket, sha256(std::to_string(caller)), {body}, kLong)) return -1;
  }
  std::atomic<int> wrong{0};
  std::latch start(kCallers);
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      start.arrive_and_wait();
      for (int i = 0; i < 10; ++i) {
        const auto found = store.read(kBucket, sha256(std::to_string(caller)), 1 << 20, kLong);
        if (!found || !*found || (*found)->view() != body_of(caller)) ++wrong;
        const auto missed = store.read(kBucket, Digest(), 100, kLong);
        if (!missed || *missed) ++wrong;
      }
    });
  }
  callers.clear();
  return wrong;
}

TEST(HttpSharing, Http2RequestsOfAllThreadsUseOneConnection) {
  Nginx nginx({.tls = true, .http2 = true});
  const auto store = open_http_object_store(options_for(nginx, {.tls = true})).value();
  EXPECT_EQ(read_at_the_same_time(*store), 0);
  ASSERT_TRUE(eventually([&] { return nginx.requests() == kCallers * 21u; }));
  EXPECT_EQ(nginx.connections(), 1u);
  for (const Nginx::Request& request : nginx.log()) EXPECT_EQ(request.protocol, "HTTP/2.0");
}

TEST(HttpSharing, FirstHttp2RequestsWaitForOneConnection) {
  Nginx nginx({.tls = true, .http2 = true});
  const auto store = open_http_object_store(options_for(nginx, {.tls = true})).value();
  std::atomic<int> wrong{0};
  std::latch start(kCallers);
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&] {
      start.arrive_and_wait();
      const auto missed = store->read(kBucket, Digest(), 100, kLong);
      if (!missed || *missed) ++wrong;
    });
  }
  callers.clear();
  EXPECT_EQ(wrong, 0);
  ASSERT_TRUE(eventually([&] { return nginx.requests() == std::size_t{kCallers}; }));
  EXPECT_EQ(nginx.connections(), 1u);
}

TEST(HttpSharing, AllWaitingCallersStartOnceTheServerIsKnownToUseHttp2) {
  Nginx nginx({.tls = true, .http2 = true, .rate = 1'000});
  const Digest slow = sha256("an object that takes longer than the test");
  write_text(nginx.data() + '/' + to_string(kBucket) + '/' + slow.hex(), std::string(1 << 20, 'a'));
  const auto store = open_http_object_store(options_for(nginx, {.tls = true})).value();
  std::atomic<bool> stop{false};
  const std::function<bool()> keep_waiting = [&] { return !stop; };
  std::vector<std::jthread> callers;
  const auto start = [&](const Digest& name) {
    callers.emplace_back([&, name] {
      InterruptCheck interrupt(&keep_waiting);
      (void)store->read(kBucket, name, 2 << 20, Deadline(system_clock(), kLong, &interrupt));
    });
  };
  nginx.pause();
  // One of the first callers ends soon. The others keep their handles.
  start(Digest());
  while (callers.size() < SharedMulti::kMaxConnections) start(slow);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  // The first that wait keep theirs, too. They have no interrupt check, which would make them look again.
  for (int waiting = 0; waiting < 4; ++waiting) {
    callers.emplace_back([&] { (void)store->read(kBucket, slow, 2 << 20, std::chrono::seconds(7)); });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::jthread resumer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    nginx.resume();
  });
  const auto last = store->read(kBucket, Digest(), 100, std::chrono::seconds(4));
  stop = true;
  EXPECT_TRUE(last.has_value()) << last.error().message;
}

TEST(HttpSharing, Http1ConnectionsAreReusedAndLimited) {
  for (const bool tls : {false, true}) {
    Nginx nginx({.tls = tls});
    const auto store = open_http_object_store(options_for(nginx, {.tls = tls})).value();
    EXPECT_EQ(read_at_the_same_time(*store), 0);
    ASSERT_TRUE(eventually([&] { return nginx.requests() == kCallers * 21u; }));
    EXPECT_LE(nginx.connections(), SharedMulti::kMaxConnections);
    EXPECT_GT(nginx.connections(), 1u);
  }
}

/// Starts a caller of a store whose server is paused, and waits until its transfer has most likely begun.
class PausedCaller {
 public:
  PausedCaller(ObjectStore& store, std::chrono::milliseconds timeout)
      : thread_([this, &store, timeout] {
          const auto found = store.read(kBucket, Digest(), 100, timeout);
          error_ = found ? std::nullopt : std::optional(found.error().code);
          done_ = true;
        }) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  bool is_done() const { return done_; }
  std::optional<Code> error() {
    thread_.join();
    return error_;
  }

 private:
  std::atomic<bool> done_{false};
  std::optional<Code> error_;
  std::thread thread_;
};

class PausedServer : public testing::TestWithParam<bool> {
 protected:
  PausedServer() { nginx_.pause(); }
  Nginx nginx_{{.tls = GetParam(), .http2 = GetParam()}};
  std::unique_ptr<ObjectStore> store_ = [this] {
    auto store = open_http_object_store(options_for(nginx_, {.tls = GetParam()})).value();
    EXPECT_TRUE(store->probe(kLong).has_value());
    return store;
  }();
};

TEST_P(PausedServer, AnotherCallerDrivesAfterTheTimeoutOfTheFirst) {
  PausedCaller first(*store_, std::chrono::milliseconds(200));
  PausedCaller second(*store_, kLong);
  PausedCaller third(*store_, kLong);
  EXPECT_EQ(first.error(), Code::TimedOut);
  EXPECT_FALSE(second.is_done());
  nginx_.resume();
  EXPECT_EQ(second.error(), std::nullopt);
  EXPECT_EQ(third.error(), std::nullopt);
}

TEST_P(PausedServer, TimeoutEndsOneRequestOnly) {
  PausedCaller first(*store_, kLong);
  PausedCaller second(*store_, std::chrono::milliseconds(200));
  EXPECT_EQ(second.error(), Code::TimedOut);
  EXPECT_FALSE(first.is_done());
  nginx_.resume();
  EXPECT_EQ(first.error(), std::nullopt);
  EXPECT_TRUE(store_->probe(kLong).has_value());
}

// A process that is stopped behind a load balancer, for example, while its host confirms packets.
TEST_P(PausedServer, RequestAfterTimeoutUsesAnotherConnection) {
  EXPECT_FALSE(store_->probe(std::chrono::milliseconds(200)).has_value());
  nginx_.resume();
  EXPECT_TRUE(store_->probe(kLong).has_value());
  EXPECT_TRUE(eventually([&] { return nginx_.connections() == 2; }));
}

TEST_P(PausedServer, CanceledThreadStopsNoOtherCaller) {
  pthread_t canceled{};
  const auto read = [](void* store) -> void* {
    (void)static_cast<ObjectStore*>(store)->read(kBucket, Digest(), 100, kLong);
    for (;;) pthread_testcancel();
  };
  ASSERT_EQ(pthread_create(&canceled, nullptr, read, store_.get()), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it is most likely the driver
  PausedCaller second(*store_, std::chrono::milliseconds(500));
  ASSERT_EQ(pthread_cancel(canceled), 0);
  if (!eventually([&] { return second.is_done(); })) std::abort();  // a caller without an end cannot be joined
  EXPECT_EQ(second.error(), Code::TimedOut);
  nginx_.resume();
  EXPECT_EQ(pthread_join(canceled, nullptr), 0);
  EXPECT_TRUE(store_->probe(kLong).has_value());
}

TEST_P(PausedServer, InterruptionEndsOneRequestOnlyAndIsPolledByItsCaller) {
  const auto read_interrupted = [this] {
    const std::thread::id caller = std::this_thread::get_id();
    int polls = 0;
    bool elsewhere = false;
    const std::function<bool()> keep_waiting = [&] {
      elsewhere |= std::this_thread::get_id() != caller;
      return ++polls < 3;
    };
    InterruptCheck interrupt(&keep_waiting);
    const auto found = store_->read(kBucket, Digest(), 100, Deadline(system_clock(), kLong, &interrupt));
    EXPECT_FALSE(elsewhere);
    return found ? std::nullopt : std::optional(found.error().code);
  };
  EXPECT_EQ(read_interrupted(), Code::Cancelled) << "of the caller that drives";
  PausedCaller driver(*store_, kLong);
  EXPECT_EQ(read_interrupted(), Code::Cancelled) << "of a caller that waits";
  EXPECT_FALSE(driver.is_done());
  nginx_.resume();
  EXPECT_EQ(driver.error(), std::nullopt);
}

// A function of the user may need a lock, such as Python's, that another caller holds.
TEST_P(PausedServer, InterruptCheckThatBlocksStopsNoOtherCaller) {
  std::atomic<bool> blocked{false};
  std::atomic<bool> release{false};
  std::jthread blocking([&] {
    const std::function<bool()> keep_waiting = [&] {
      blocked = true;
      (void)eventually([&] { return release.load(); }, kLong);
      return true;
    };
    InterruptCheck interrupt(&keep_waiting);
    (void)store_->read(kBucket, Digest(), 100, Deadline(system_clock(), kLong, &interrupt));
  });
  ASSERT_TRUE(eventually([&] { return blocked.load(); }));
  PausedCaller timed_out(*store_, std::chrono::milliseconds(100));
  EXPECT_EQ(timed_out.error(), Code::TimedOut);
  nginx_.resume();
  EXPECT_TRUE(store_->probe(kLong).has_value());
  release = true;
}

INSTANTIATE_TEST_SUITE_P(Protocols, PausedServer, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& tested) { return tested.param ? "Http2" : "Http1"; });

}  // namespace
}  // namespace kiln::test
