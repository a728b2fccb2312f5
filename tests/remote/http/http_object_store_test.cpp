// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "remote/http/http_client.hpp"
#include "remote/http/http_object_store.hpp"
#include "support/processes/child.hpp"
#include "support/processes/eventually.hpp"
#include "support/servers/nginx_object_stores.hpp"

namespace kiln::test {
namespace {

using Bucket = ObjectStore::Bucket;
constexpr std::chrono::seconds kHangTimeout{10};

TEST(HttpObjectStore, ConnectionsAreReused) {
  Nginx nginx({.tls = true, .http2 = true});
  const auto object_store = open_http_object_store(options_for(nginx, {.tls = true})).value();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(object_store->write(Bucket::Cas, sha256(std::to_string(i)), {"a body"}, kHangTimeout).has_value());
    ASSERT_TRUE(object_store->read(Bucket::Cas, sha256(std::to_string(i)), 100, kHangTimeout).value().has_value());
    ASSERT_FALSE(
        object_store->read(Bucket::ActionCache, sha256(std::to_string(i)), 100, kHangTimeout).value().has_value());
  }
  ASSERT_TRUE(eventually([&] { return nginx.requests() == 60; }));
  EXPECT_EQ(nginx.connections(), 1u);
  // nginx numbers HTTP/2 requests from zero and HTTP/1.1 requests from one.
  EXPECT_GE(nginx.log().back().number, 59u);
}

TEST(HttpObjectStore, Http2IsUsedIfOffered) {
  for (const bool offered : {true, false}) {
    Nginx nginx({.tls = true, .http2 = offered});
    const auto object_store = open_http_object_store(options_for(nginx, {.tls = true})).value();
    ASSERT_TRUE(object_store->probe(kHangTimeout).has_value());
    ASSERT_TRUE(eventually([&] { return nginx.requests() == 1; }));
    EXPECT_EQ(nginx.log()[0].protocol, offered ? "HTTP/2.0" : "HTTP/1.1");
  }
}

TEST(HttpObjectStore, OpeningDoesNotConnect) {
  Nginx nginx;
  const auto object_store = open_http_object_store(options_for(nginx)).value();
  EXPECT_EQ(object_store->describe(), nginx.url());
  nginx.stop();
  EXPECT_EQ(nginx.requests(), 0u);
}

TEST(HttpObjectStore, ConnectionsAreLimited) {
  Nginx nginx;
  const auto object_store = open_http_object_store(options_for(nginx)).value();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 32; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        if (!object_store->read(Bucket::ActionCache, Digest(), 100, kHangTimeout)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  ASSERT_TRUE(eventually([&] { return nginx.requests() == 320; }));
  EXPECT_LE(nginx.connections(), SharedMulti::kMaxConnections);
}

TEST(HttpObjectStore, StoppedServerIsUnavailableUntilRestarted) {
  Nginx nginx;
  const auto object_store = open_http_object_store(options_for(nginx)).value();
  const std::string body(100'000, 'b');
  ASSERT_TRUE(object_store->write(Bucket::Cas, Digest(), {body}, kHangTimeout).has_value());
  nginx.stop();
  const auto gone = object_store->read(Bucket::Cas, Digest(), 200'000, kHangTimeout);
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().code, Code::Unavailable);
  EXPECT_EQ(object_store->probe(kHangTimeout).error().code, Code::Unavailable);
  nginx.start();
  EXPECT_TRUE(object_store->probe(kHangTimeout).has_value());
  nginx.stop();
  nginx.start();
  // The persistent connection is closed: the whole body is sent again on a new one.
  const Status again = object_store->write(Bucket::Cas, Digest(), {body, body}, kHangTimeout);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(object_store->read(Bucket::Cas, Digest(), 200'000, kHangTimeout).value()->size(), 200'000u);
}

TEST(HttpObjectStore, HangingServerCostsTimeout) {
  Nginx nginx;
  const auto object_store = open_http_object_store(options_for(nginx)).value();
  ASSERT_TRUE(object_store->probe(kHangTimeout).has_value());
  nginx.pause();
  const auto start = system_clock().steady();
  const auto hung = object_store->read(Bucket::ActionCache, Digest(), 100, std::chrono::milliseconds(50));
  EXPECT_LT(system_clock().steady() - start, std::chrono::seconds(10));
  ASSERT_FALSE(hung.has_value());
  EXPECT_EQ(hung.error().code, Code::TimedOut);
  nginx.resume();
  EXPECT_TRUE(object_store->probe(kHangTimeout).has_value());
}

TEST(HttpObjectStore, WrongPathHasNoBucket) {
  Nginx nginx;
  HttpOptions elsewhere = options_for(nginx);
  elsewhere.url += "/another/path";
  const auto wrong = open_http_object_store(elsewhere).value();
  const auto object_store = open_http_object_store(options_for(nginx)).value();
  EXPECT_TRUE(object_store->has_bucket(Bucket::ActionCache, kHangTimeout).value());
  ASSERT_TRUE(wrong->probe(kHangTimeout).has_value()) << "a probe cannot tell";
  EXPECT_FALSE(wrong->has_bucket(Bucket::ActionCache, kHangTimeout).value());
}

TEST(HttpObjectStore, NoRequestWithoutTimeLeft) {
  Nginx nginx;
  const auto object_store = open_http_object_store(options_for(nginx)).value();
  for (const std::chrono::nanoseconds none : {std::chrono::nanoseconds(0), std::chrono::nanoseconds(-5)}) {
    EXPECT_EQ(object_store->read(Bucket::ActionCache, Digest(), 100, none).error().code, Code::TimedOut);
    EXPECT_EQ(object_store->write(Bucket::ActionCache, Digest(), {"a"}, none).error().code, Code::TimedOut);
  }
  EXPECT_TRUE(object_store->probe(std::chrono::nanoseconds::max()).has_value());
  ASSERT_TRUE(eventually([&] { return nginx.requests() == 1; }));
}

TEST(HttpObjectStore, ForkedChildHasOwnConnections) {
  Nginx nginx({.tls = true});
  const auto object_store = open_http_object_store(options_for(nginx, {.tls = true})).value();
  ASSERT_TRUE(object_store->write(Bucket::ActionCache, Digest(), {"a body"}, kHangTimeout).has_value());
  const auto reads_it = [&] {
    const auto found = object_store->read(Bucket::ActionCache, Digest(), 100, kHangTimeout);
    return found && *found && (*found)->view() == "a body";
  };
  EXPECT_EQ(run_in_child([&] { return reads_it() && reads_it() ? 0 : 1; }), 0);
  // The parent's connection is unaffected.
  EXPECT_TRUE(reads_it());
  ASSERT_TRUE(eventually([&] { return nginx.requests() == 4; }));
  EXPECT_EQ(nginx.connections(), 2u);
}

TEST(HttpObjectStore, ServerWithoutListingIsUnsupported) {
  Nginx nginx;
  HttpOptions options = options_for(nginx);
  options.url += "/elsewhere";
  const auto listed = open_http_object_store(options).value()->list(Bucket::ActionCache, kHangTimeout);
  ASSERT_FALSE(listed.has_value());
  EXPECT_EQ(listed.error().code, Code::Unsupported);
}

// Returns the time after which the kernel closes each TCP connection of this process whose packets are not confirmed.
std::vector<int> user_timeouts() {
  std::vector<int> found;
  for (int fd = 0; fd < 1024; ++fd) {
    int milliseconds = 0;
    socklen_t size = sizeof milliseconds;
    if (getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &size) == 0) found.push_back(milliseconds);
  }
  return found;
}

TEST(HttpObjectStore, KernelClosesConnectionOfSilentServer) {
  Nginx nginx;
  const auto object_store = open_http_object_store(options_for(nginx)).value();
  ASSERT_TRUE(object_store->probe(kHangTimeout).has_value());
  EXPECT_EQ(user_timeouts(), std::vector<int>{20'000});
}

TEST(HttpObjectStore, PendingSigpipeStaysPendingOverTls) {
  Nginx nginx({.tls = true});
  const auto object_store = open_http_object_store(options_for(nginx, {.tls = true})).value();
  sigset_t pipe;
  sigset_t before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &pipe, &before), 0);
  ASSERT_EQ(pthread_kill(pthread_self(), SIGPIPE), 0);
  EXPECT_TRUE(object_store->probe(kHangTimeout));
  sigset_t pending;
  ASSERT_EQ(sigpending(&pending), 0);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 1);
  const timespec now{};
  (void)sigtimedwait(&pipe, nullptr, &now);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(HttpObjectStore, OtherFilesAreNotListed) {
  Nginx nginx;
  write_text(nginx.data() + "/ac/notes.txt", "a note");
  std::filesystem::create_directory(nginx.data() + "/ac/" + std::string(64, 'b'));
  const auto object_store = open_http_object_store(options_for(nginx)).value();
  EXPECT_TRUE(object_store->list(Bucket::ActionCache, kHangTimeout).value().empty());
}

}  // namespace
}  // namespace kiln::test
