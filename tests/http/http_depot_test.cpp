#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "http/http_client.hpp"
#include "http/http_depot.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/nginx_depots.hpp"

namespace kiln::test {
namespace {

using Shelf = Depot::Shelf;
constexpr std::chrono::seconds kPatience{10};

TEST(HttpDepot, ConnectionsAreReused) {
  Nginx nginx({.tls = true, .http2 = true});
  const auto depot = open_http_depot(options_for(nginx, {.tls = true})).value();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(depot->write(Shelf::Content, sha256(std::to_string(i)), {"a body"}, kPatience).ok());
    ASSERT_TRUE(depot->read(Shelf::Content, sha256(std::to_string(i)), 100, kPatience).value().has_value());
    ASSERT_FALSE(depot->read(Shelf::Action, sha256(std::to_string(i)), 100, kPatience).value().has_value());
  }
  ASSERT_TRUE(eventually([&] { return nginx.requests() == 60; }));
  EXPECT_EQ(nginx.connections(), 1u);
  // HTTP/2's requests are numbered from zero here and HTTP/1.1's from one.
  EXPECT_GE(nginx.log().back().number, 59u);
}

TEST(HttpDepot, Http2IsTakenWhereItIsOffered) {
  for (const bool offered : {true, false}) {
    Nginx nginx({.tls = true, .http2 = offered});
    const auto depot = open_http_depot(options_for(nginx, {.tls = true})).value();
    ASSERT_TRUE(depot->probe(kPatience).ok());
    ASSERT_TRUE(eventually([&] { return nginx.requests() == 1; }));
    EXPECT_EQ(nginx.log()[0].protocol, offered ? "HTTP/2.0" : "HTTP/1.1");
  }
}

TEST(HttpDepot, OpeningItConnectsToNothing) {
  Nginx nginx;
  const auto depot = open_http_depot(options_for(nginx)).value();
  EXPECT_EQ(depot->describe(), nginx.url());
  nginx.stop();
  EXPECT_EQ(nginx.requests(), 0u);
}

TEST(HttpDepot, AHostHasOnlySoManyConnections) {
  Nginx nginx;
  const auto depot = open_http_depot(options_for(nginx)).value();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 32; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        if (!depot->read(Shelf::Action, Digest(), 100, kPatience)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  ASSERT_TRUE(eventually([&] { return nginx.requests() == 320; }));
  EXPECT_LE(nginx.connections(), HttpClient::kMostHandles);
}

TEST(HttpDepot, AServerThatIsGoneIsUnavailableAndOneThatReturnsIsUsedAgain) {
  Nginx nginx;
  const auto depot = open_http_depot(options_for(nginx)).value();
  const std::string body(100'000, 'b');
  ASSERT_TRUE(depot->write(Shelf::Content, Digest(), {body}, kPatience).ok());
  nginx.stop();
  const auto gone = depot->read(Shelf::Content, Digest(), 200'000, kPatience);
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, Code::Unavailable);
  EXPECT_EQ(depot->probe(kPatience).error().code, Code::Unavailable);
  nginx.start();
  EXPECT_TRUE(depot->probe(kPatience).ok());
  nginx.stop();
  nginx.start();
  // On the connection that was kept nobody is there any more: it is sent again on a new one, whole.
  const Status again = depot->write(Shelf::Content, Digest(), {body, body}, kPatience);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(depot->read(Shelf::Content, Digest(), 200'000, kPatience).value()->size(), 200'000u);
}

TEST(HttpDepot, AServerThatHangsCostsTheLimit) {
  Nginx nginx;
  const auto depot = open_http_depot(options_for(nginx)).value();
  ASSERT_TRUE(depot->probe(kPatience).ok());
  nginx.pause();
  const auto start = system_clock().steady();
  const auto hung = depot->read(Shelf::Action, Digest(), 100, std::chrono::milliseconds(50));
  EXPECT_LT(system_clock().steady() - start, std::chrono::seconds(2));
  ASSERT_FALSE(hung.ok());
  EXPECT_EQ(hung.error().code, Code::TimedOut);
  nginx.resume();
  EXPECT_TRUE(depot->probe(kPatience).ok());
}

TEST(HttpDepot, WithoutTimeNothingIsAsked) {
  Nginx nginx;
  const auto depot = open_http_depot(options_for(nginx)).value();
  for (const std::chrono::nanoseconds none : {std::chrono::nanoseconds(0), std::chrono::nanoseconds(-5)}) {
    EXPECT_EQ(depot->read(Shelf::Action, Digest(), 100, none).error().code, Code::TimedOut);
    EXPECT_EQ(depot->write(Shelf::Action, Digest(), {"a"}, none).error().code, Code::TimedOut);
  }
  EXPECT_TRUE(depot->probe(std::chrono::nanoseconds::max()).ok());
  ASSERT_TRUE(eventually([&] { return nginx.requests() == 1; }));
}

TEST(HttpDepot, AChildOfAForkHasConnectionsOfItsOwn) {
  Nginx nginx({.tls = true});
  const auto depot = open_http_depot(options_for(nginx, {.tls = true})).value();
  ASSERT_TRUE(depot->write(Shelf::Action, Digest(), {"a body"}, kPatience).ok());
  const auto reads_it = [&] {
    const auto found = depot->read(Shelf::Action, Digest(), 100, kPatience);
    return found && *found && (*found)->view() == "a body";
  };
  EXPECT_EQ(run_in_child([&] { return reads_it() && reads_it() ? 0 : 1; }), 0);
  // The parent's connection is as it was.
  EXPECT_TRUE(reads_it());
  ASSERT_TRUE(eventually([&] { return nginx.requests() == 4; }));
  EXPECT_EQ(nginx.connections(), 2u);
}

TEST(HttpDepot, AServerThatListsNothingSaysSo) {
  Nginx nginx;
  HttpOptions options = options_for(nginx);
  options.url += "/elsewhere";
  const auto listed = open_http_depot(options).value()->list(Shelf::Action, kPatience);
  ASSERT_FALSE(listed.ok());
  EXPECT_EQ(listed.error().code, Code::Unsupported);
}

TEST(HttpDepot, WhatIsNoFileOfTheLayoutIsNotListed) {
  Nginx nginx;
  spit(nginx.data() + "/ac/notes.txt", "a note");
  std::filesystem::create_directory(nginx.data() + "/ac/" + std::string(64, 'b'));
  const auto depot = open_http_depot(options_for(nginx)).value();
  EXPECT_TRUE(depot->list(Shelf::Action, kPatience).value().empty());
}

}  // namespace
}  // namespace kiln::test
