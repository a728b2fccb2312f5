#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "http/http_depot.hpp"
#include "support/eventually.hpp"
#include "support/nginx_depots.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

constexpr std::chrono::seconds kTime{10};
constexpr const char* kSecret = "swordfish-of-this-test";

/// Every way of asking, and what it is told.
std::vector<Error> errors_of(Depot& depot) {
  std::vector<Error> all;
  const auto take = [&](const auto& result) {
    if (!result) all.push_back(result.error());
  };
  take(depot.read(Depot::Shelf::Action, Digest(), 100, kTime));
  take(depot.write(Depot::Shelf::Content, Digest(), {"a body"}, kTime));
  take(depot.remove(Depot::Shelf::Content, Digest(), kTime));
  take(depot.list(Depot::Shelf::Action, kTime));
  take(depot.probe(kTime));
  return all;
}

void expect_all_refused(Depot& depot) {
  const std::vector<Error> errors = errors_of(depot);
  EXPECT_EQ(errors.size(), 5u);
  for (const Error& error : errors) {
    EXPECT_EQ(error.code, Code::Refused) << error.message;
    EXPECT_EQ(error.message.find(kSecret), std::string::npos) << error.message;
    EXPECT_EQ(error.log.find(kSecret), std::string::npos);
  }
}

TEST(HttpCredentials, AWrongTokenIsRefusedAndInNoMessage) {
  Nginx nginx({.token = "the-right-one"});
  const TemporaryDirectory folder;
  HttpOptions options = options_for(nginx);
  options.token_file = folder.path("token");
  spit(options.token_file, std::string(kSecret) + "\n");
  const auto depot = open_http_depot(options).value();
  expect_all_refused(*depot);
  EXPECT_EQ(depot->describe().find(kSecret), std::string::npos);
}

TEST(HttpCredentials, NoTokenIsRefusedWhereOneIsWanted) {
  Nginx nginx({.token = "the-right-one"});
  expect_all_refused(*open_http_depot(options_for(nginx)).value());
}

TEST(HttpCredentials, ATokenThatWasReplacedIsReadAnewOnce) {
  Nginx nginx({.token = "first"});
  const TemporaryDirectory folder;
  HttpOptions options = options_for(nginx);
  options.token_file = folder.path("token");
  spit(options.token_file, "first\nanother line\n");
  const auto depot = open_http_depot(options).value();
  ASSERT_TRUE(depot->probe(kTime).ok());
  nginx.set_token("second");
  EXPECT_EQ(depot->probe(kTime).error().code, Code::Refused);
  spit(options.token_file, "second\r\n");
  EXPECT_TRUE(depot->probe(kTime).ok());
  EXPECT_TRUE(depot->probe(kTime).ok());
  // One; refused, and not again with the same; refused and again with the new one; one.
  ASSERT_TRUE(eventually([&] { return nginx.requests() == 5; }));
}

TEST(HttpCredentials, AFileWithoutATokenIsReportedAndNothingIsSent) {
  Nginx nginx;
  const TemporaryDirectory folder;
  HttpOptions options = options_for(nginx);
  options.token_file = folder.path("token");
  const auto depot = open_http_depot(options).value();
  for (const std::string& text : {std::string(), std::string("\nsecond line"), std::string("a\tsecret of two words"),
                                  std::string("secret\rX-More: header"), std::string(100'000, 's')}) {
    spit(options.token_file, text);
    const Status probed = depot->probe(kTime);
    ASSERT_FALSE(probed.ok());
    EXPECT_EQ(probed.error().code, Code::Unavailable);
    EXPECT_EQ(probed.error().message.find("secret"), std::string::npos);
  }
  EXPECT_EQ(nginx.requests(), 0u);
}

TEST(HttpCredentials, AServerOfAnotherAuthorityIsNotBelieved) {
  Nginx nginx({.tls = true});
  const TestCa another;
  HttpOptions options = options_for(nginx, {.tls = true});
  options.ca_file = another.ca();
  expect_all_refused(*open_http_depot(options).value());
  // The system's authorities do not know it either.
  options.ca_file.clear();
  expect_all_refused(*open_http_depot(options).value());
  EXPECT_EQ(nginx.requests(), 0u);
}

TEST(HttpCredentials, AServerUnderAnotherNameThanItsCertificateHasIsNotBelieved) {
  Nginx nginx({.tls = true, .address = "127.0.0.2"});
  expect_all_refused(*open_http_depot(options_for(nginx, {.tls = true})).value());
}

TEST(HttpCredentials, NobodyIsServedWithoutACertificateWhereOneIsWanted) {
  const NginxOptions wants{.tls = true, .client_certificate = true};
  Nginx nginx(wants);
  HttpOptions options = options_for(nginx, wants);
  ASSERT_TRUE(open_http_depot(options).value()->probe(kTime).ok());
  const TestCa another;
  options.client_cert = another.client_cert();
  options.client_key = another.client_key();
  EXPECT_FALSE(open_http_depot(options).value()->probe(kTime).ok());
  options.client_cert.clear();
  options.client_key.clear();
  const Status refused = open_http_depot(options).value()->probe(kTime);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::Refused) << refused.error().message;
}

}  // namespace
}  // namespace kiln::test
