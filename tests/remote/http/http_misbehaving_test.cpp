// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <ostream>
#include <string>

#include "base/clock.hpp"
#include "remote/http/http_object_store.hpp"
#include "support/processes/scoped_env.hpp"
#include "support/servers/misbehaving_server.hpp"

namespace kiln::test {
namespace {

using Bucket = ObjectStore::Bucket;

struct MisbehaviorCase {
  const char* name;
  Mode mode;
  Code code;  ///< expected code of a read
  const char* says = "";
  friend std::ostream& operator<<(std::ostream& out, const MisbehaviorCase& one) { return out << one.name; }
};

class HttpMisbehavior : public testing::TestWithParam<MisbehaviorCase> {
 protected:
  HttpMisbehavior() : server_(GetParam().mode, GetParam().says) {
    HttpOptions options;
    options.url = server_.url();
    object_store_ = open_http_object_store(options).value();
  }
  MisbehavingServer server_;
  std::unique_ptr<ObjectStore> object_store_;
};

TEST_P(HttpMisbehavior, ReadEndsWithinTimeoutWithExpectedCode) {
  // Cases that end only by the timeout get a short one.
  const bool ends_by_limit = GetParam().code == Code::TimedOut;
  const std::chrono::milliseconds timeout(ends_by_limit ? 60 : 60'000);
  const auto start = system_clock().steady();
  const auto found = object_store_->read(Bucket::Cas, Digest(), 2'000, timeout);
  EXPECT_LT(system_clock().steady() - start, std::chrono::seconds(20));
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, GetParam().code) << found.error().message;
  EXPECT_NE(found.error().message.find(server_.url()), std::string::npos);
}

TEST_P(HttpMisbehavior, WriteAndMaintenanceEndWithinTimeout) {
  const std::chrono::milliseconds timeout(40);
  const auto start = system_clock().steady();
  (void)object_store_->write(Bucket::Cas, Digest(), {std::string(100'000, 'x')}, timeout);
  (void)object_store_->remove(Bucket::Cas, Digest(), timeout);
  (void)object_store_->list(Bucket::Cas, timeout);
  (void)object_store_->probe(timeout);
  EXPECT_LT(system_clock().steady() - start, std::chrono::seconds(20));
}

constexpr MisbehaviorCase kCases[] = {
    {"silent", Mode::Silent, Code::TimedOut},
    {"slow", Mode::Slow, Code::TimedOut},
    {"closes", Mode::Closes, Code::Unavailable},
    {"resets", Mode::Resets, Code::Unavailable},
    {"resets_midway", Mode::ResetsMidway, Code::Unavailable},
    {"garbage", Mode::Garbage, Code::Corrupt},
    {"truncates", Mode::Truncates, Code::Corrupt},
    {"endless", Mode::Endless, Code::Corrupt},
    {"endless_headers", Mode::EndlessHeaders, Code::Corrupt},
    {"claims_too_much", Mode::ClaimsTooMuch, Code::Corrupt},
    {"redirects", Mode::Says, Code::Corrupt,
     "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"},
    {"in_trouble", Mode::Says, Code::Unavailable, "HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nsoon"},
    {"too_many", Mode::Says, Code::Unavailable, "HTTP/1.1 429 Wait\r\nContent-Length: 0\r\n\r\n"},
    {"read_only_server", Mode::Says, Code::Unsupported, "HTTP/1.1 501 Unsupported\r\nContent-Length: 0\r\n\r\n"},
    {"teapot", Mode::Says, Code::Denied, "HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n"},
    {"half_a_chunk", Mode::Says, Code::Corrupt,
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf of it"},
    {"overflowing_length", Mode::Says, Code::Corrupt,
     "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nbody"},
    {"part_of_a_body", Mode::Says, Code::Corrupt, "HTTP/1.1 206 Partial\r\nContent-Length: 4\r\n\r\npart"},
};

INSTANTIATE_TEST_SUITE_P(Modes, HttpMisbehavior, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<MisbehaviorCase>& tested) {
                           return std::string(tested.param.name);
                         });

TEST(MisbehavingHttpServer, LongErrorPageIsStillMiss) {
  MisbehavingServer server(Mode::Says,
                           "HTTP/1.1 404 No\r\nContent-Length: 1000000\r\n\r\n" + std::string(1'000'000, 'x'));
  HttpOptions options;
  options.url = server.url();
  const auto found =
      open_http_object_store(options).value()->read(Bucket::ActionCache, Digest(), 10, std::chrono::seconds(60));
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_FALSE(found->has_value());
}

TEST(MisbehavingHttpServer, UploadToPathThatDoesNotExistNamesTheCause) {
  MisbehavingServer server(Mode::Says, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
  HttpOptions options;
  options.url = server.url();
  const Status written =
      open_http_object_store(options).value()->write(Bucket::Cas, Digest(), {"x"}, std::chrono::seconds(60));
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("HTTP status 404: the server has no such path"), std::string::npos)
      << written.error().message;
}

// 501 says that the server cannot list, other errors that it might later.
TEST(MisbehavingHttpServer, OnlyStatus501OfServerErrorsMeansNoListings) {
  const auto code_for = [](const std::string& status) {
    MisbehavingServer server(Mode::Says, "HTTP/1.1 " + status + " No\r\nContent-Length: 0\r\n\r\n");
    HttpOptions options;
    options.url = server.url();
    return open_http_object_store(options).value()->list(Bucket::Cas, std::chrono::seconds(60)).error().code;
  };
  EXPECT_EQ(code_for("501"), Code::Unsupported);
  EXPECT_EQ(code_for("502"), Code::Unavailable);
}

TEST(MisbehavingHttpServer, BodyWithoutContentLengthIsReadCompletely) {
  MisbehavingServer server(Mode::Says, "HTTP/1.0 200 OK\r\n\r\na body");
  HttpOptions options;
  options.url = server.url();
  const auto found =
      open_http_object_store(options).value()->read(Bucket::ActionCache, Digest(), 10, std::chrono::seconds(60));
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ((*found)->view(), "a body");
}

TEST(MisbehavingHttpServer, ProxyVariablesAreIgnored) {
  MisbehavingServer proxy(Mode::Closes);
  MisbehavingServer server(Mode::Says, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody");
  const ScopedEnv http("http_proxy", proxy.url().c_str());
  const ScopedEnv all("ALL_PROXY", proxy.url().c_str());
  HttpOptions options;
  options.url = server.url();
  EXPECT_TRUE(open_http_object_store(options)
                  .value()
                  ->read(Bucket::ActionCache, Digest(), 10, std::chrono::seconds(60))
                  .has_value());
  EXPECT_EQ(proxy.connections(), 0u);
}

}  // namespace
}  // namespace kiln::test
