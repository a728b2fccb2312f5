// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "remote/http/http_object_store.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"
#include "support/servers/nginx_object_stores.hpp"

namespace kiln::test {
namespace {

constexpr std::chrono::seconds kTime{10};
constexpr const char* kSecret = "swordfish-of-this-test";

/// Calls every operation and returns the errors.
std::vector<Error> errors_of(ObjectStore& object_store) {
  std::vector<Error> all;
  const auto take = [&](const auto& result) {
    if (!result) all.push_back(result.error());
  };
  take(object_store.read(ObjectStore::Bucket::ActionCache, Digest(), 100, kTime));
  take(object_store.write(ObjectStore::Bucket::Cas, Digest(), {"a body"}, kTime));
  take(object_store.remove(ObjectStore::Bucket::Cas, Digest(), kTime));
  take(object_store.list(ObjectStore::Bucket::ActionCache, kTime));
  take(object_store.probe(kTime));
  return all;
}

void expect_all_rejected(ObjectStore& object_store) {
  const std::vector<Error> errors = errors_of(object_store);
  EXPECT_EQ(errors.size(), 5u);
  for (const Error& error : errors) {
    EXPECT_EQ(error.code, Code::Denied) << error.message;
    EXPECT_EQ(error.message.find(kSecret), std::string::npos) << error.message;
    EXPECT_EQ(error.log.find(kSecret), std::string::npos);
  }
}

TEST(HttpCredentials, WrongTokenIsRejectedAndNotInMessage) {
  Nginx nginx({.token = "the-right-one"});
  const TemporaryDirectory directory;
  HttpOptions options = options_for(nginx);
  options.token_file = directory.path("token");
  write_secret(options.token_file, std::string(kSecret) + "\n");
  const auto object_store = open_http_object_store(options).value();
  expect_all_rejected(*object_store);
  EXPECT_EQ(object_store->describe().find(kSecret), std::string::npos);
}

TEST(HttpCredentials, MissingTokenIsRejected) {
  Nginx nginx({.token = "the-right-one"});
  expect_all_rejected(*open_http_object_store(options_for(nginx)).value());
}

TEST(HttpCredentials, ReplacedTokenIsReadAgainOnce) {
  Nginx nginx({.token = "first"});
  const TemporaryDirectory directory;
  HttpOptions options = options_for(nginx);
  options.token_file = directory.path("token");
  write_secret(options.token_file, "first\nanother line\n");
  const auto object_store = open_http_object_store(options).value();
  ASSERT_TRUE(object_store->probe(kTime).has_value());
  nginx.set_token("second");
  EXPECT_EQ(object_store->probe(kTime).error().code, Code::Denied);
  write_secret(options.token_file, "second\r\n");
  EXPECT_TRUE(object_store->probe(kTime).has_value());
  EXPECT_TRUE(object_store->probe(kTime).has_value());
  // Requests: one; a rejected one without retry, because the token is unchanged; a rejected one and its retry; one.
  ASSERT_TRUE(eventually([&] { return nginx.requests() == 5; }));
}

TEST(HttpCredentials, InvalidTokenFileIsReportedAndNothingIsSent) {
  Nginx nginx;
  const TemporaryDirectory directory;
  HttpOptions options = options_for(nginx);
  options.token_file = directory.path("token");
  const auto object_store = open_http_object_store(options).value();
  for (const std::string& text : {std::string(), std::string("\nsecond line"), std::string("a\tsecret of two words"),
                                  std::string("secret\rX-More: header"), std::string(100'000, 's')}) {
    write_secret(options.token_file, text);
    const Status probed = object_store->probe(kTime);
    ASSERT_FALSE(probed.has_value());
    EXPECT_EQ(probed.error().code, Code::Unavailable);
    EXPECT_EQ(probed.error().message.find("secret"), std::string::npos);
  }
  EXPECT_EQ(nginx.requests(), 0u);
}

TEST(HttpCredentials, ServerOfUnknownCaIsNotTrusted) {
  Nginx nginx({.tls = true});
  const TestCa another;
  HttpOptions options = options_for(nginx, {.tls = true});
  options.ca_file = another.ca();
  expect_all_rejected(*open_http_object_store(options).value());
  // The system's CAs do not know it either.
  options.ca_file.clear();
  expect_all_rejected(*open_http_object_store(options).value());
  EXPECT_EQ(nginx.requests(), 0u);
}

TEST(HttpCredentials, CertificateForAnotherNameIsNotTrusted) {
  Nginx nginx({.tls = true, .address = "127.0.0.2"});
  expect_all_rejected(*open_http_object_store(options_for(nginx, {.tls = true})).value());
}

TEST(HttpCredentials, MissingClientCertificateIsRejected) {
  const NginxOptions wants{.tls = true, .client_certificate = true};
  Nginx nginx(wants);
  HttpOptions options = options_for(nginx, wants);
  ASSERT_TRUE(open_http_object_store(options).value()->probe(kTime).has_value());
  const TestCa another;
  options.client_cert = another.client_cert();
  options.client_key = another.client_key();
  EXPECT_FALSE(open_http_object_store(options).value()->probe(kTime).has_value());
  options.client_cert.clear();
  options.client_key.clear();
  const Status rejected = open_http_object_store(options).value()->probe(kTime);
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, Code::Denied) << rejected.error().message;
}

}  // namespace
}  // namespace kiln::test
