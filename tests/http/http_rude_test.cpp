#include <gtest/gtest.h>

#include <chrono>
#include <ostream>
#include <string>

#include "base/clock.hpp"
#include "http/http_depot.hpp"
#include "support/rude_server.hpp"
#include "support/variable.hpp"

namespace kiln::test {
namespace {

using Shelf = Depot::Shelf;

struct RudeCase {
  const char* name;
  Manner manner;
  Code code;  ///< of a read
  const char* says = "";
  friend std::ostream& operator<<(std::ostream& out, const RudeCase& one) { return out << one.name; }
};

class HttpRude : public testing::TestWithParam<RudeCase> {
 protected:
  HttpRude() : server_(GetParam().manner, GetParam().says) {
    HttpOptions options;
    options.url = server_.url();
    depot_ = open_http_depot(options).value();
  }
  RudeServer server_;
  std::unique_ptr<Depot> depot_;
};

TEST_P(HttpRude, AReadEndsWithinItsLimitWithTheRightCode) {
  // Those that end by the limit alone are given little of it.
  const bool ends_by_limit = GetParam().code == Code::TimedOut;
  const std::chrono::milliseconds limit(ends_by_limit ? 60 : 5'000);
  const auto start = system_clock().steady();
  const auto found = depot_->read(Shelf::Content, Digest(), 2'000, limit);
  EXPECT_LT(system_clock().steady() - start, std::chrono::seconds(3));
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, GetParam().code) << found.error().message;
  EXPECT_NE(found.error().message.find(server_.url()), std::string::npos);
}

TEST_P(HttpRude, WritingAndUpkeepEndWithinTheirLimits) {
  const std::chrono::milliseconds limit(40);
  const auto start = system_clock().steady();
  (void)depot_->write(Shelf::Content, Digest(), {std::string(100'000, 'x')}, limit);
  (void)depot_->remove(Shelf::Content, Digest(), limit);
  (void)depot_->list(Shelf::Content, limit);
  (void)depot_->probe(limit);
  EXPECT_LT(system_clock().steady() - start, std::chrono::seconds(4));
}

constexpr RudeCase kCases[] = {
    {"silent", Manner::Silent, Code::TimedOut},
    {"slow", Manner::Slow, Code::TimedOut},
    {"closes", Manner::Closes, Code::Unavailable},
    {"resets", Manner::Resets, Code::Unavailable},
    {"resets_midway", Manner::ResetsMidway, Code::Unavailable},
    {"garbage", Manner::Garbage, Code::Corrupt},
    {"truncates", Manner::Truncates, Code::Corrupt},
    {"endless", Manner::Endless, Code::Corrupt},
    {"endless_headers", Manner::EndlessHeaders, Code::Corrupt},
    {"claims_too_much", Manner::ClaimsTooMuch, Code::Corrupt},
    {"redirects", Manner::Says, Code::Corrupt,
     "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"},
    {"in_trouble", Manner::Says, Code::Unavailable, "HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nsoon"},
    {"too_many", Manner::Says, Code::Unavailable, "HTTP/1.1 429 Wait\r\nContent-Length: 0\r\n\r\n"},
    {"teapot", Manner::Says, Code::Refused, "HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n"},
    {"half_a_chunk", Manner::Says, Code::Corrupt,
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf of it"},
    {"overflowing_length", Manner::Says, Code::Corrupt,
     "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nbody"},
    {"part_of_a_body", Manner::Says, Code::Corrupt, "HTTP/1.1 206 Partial\r\nContent-Length: 4\r\n\r\npart"},
};

INSTANTIATE_TEST_SUITE_P(Manners, HttpRude, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<RudeCase>& tested) { return std::string(tested.param.name); });

TEST(HttpRudeServer, AnErrorPageLongerThanABodyMayBeIsStillAMiss) {
  RudeServer server(Manner::Says, "HTTP/1.1 404 No\r\nContent-Length: 1000000\r\n\r\n" + std::string(1'000'000, 'x'));
  HttpOptions options;
  options.url = server.url();
  const auto found = open_http_depot(options).value()->read(Shelf::Action, Digest(), 10, std::chrono::seconds(5));
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_FALSE(found->has_value());
}

TEST(HttpRudeServer, ABodyWithoutALengthIsReadToItsEnd) {
  RudeServer server(Manner::Says, "HTTP/1.0 200 OK\r\n\r\na body");
  HttpOptions options;
  options.url = server.url();
  const auto found = open_http_depot(options).value()->read(Shelf::Action, Digest(), 10, std::chrono::seconds(5));
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ((*found)->view(), "a body");
}

TEST(HttpRudeServer, TheUsualProxyVariablesAreNotFollowed) {
  RudeServer proxy(Manner::Closes);
  RudeServer server(Manner::Says, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody");
  const Variable http("http_proxy", proxy.url().c_str());
  const Variable all("ALL_PROXY", proxy.url().c_str());
  HttpOptions options;
  options.url = server.url();
  EXPECT_TRUE(open_http_depot(options).value()->read(Shelf::Action, Digest(), 10, std::chrono::seconds(5)).ok());
  EXPECT_EQ(proxy.connections(), 0u);
}

}  // namespace
}  // namespace kiln::test
