// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "remote/http/http_url.hpp"

namespace kiln {
namespace {

Result<HttpOptions> with_url(const std::string& url) {
  HttpOptions options;
  options.url = url;
  return validate_http_options(options);
}

TEST(HttpUrl, TrailingSlashIsIgnored) {
  EXPECT_EQ(with_url("https://cache.example/kiln//").value().url, "https://cache.example/kiln");
  EXPECT_EQ(with_url("http://127.0.0.1:80/").value().url, "http://127.0.0.1:80");
}

TEST(HttpUrl, UserOrPasswordIsRejectedAndNotRepeated) {
  for (const char* url : {"https://user:hunter2@cache.example/", "http://hunter2@cache.example",
                          "ftp://user:hunter2@cache.example", "https://cache.example/a?hunter2@"}) {
    const auto options = with_url(url);
    ASSERT_FALSE(options.has_value()) << url;
    EXPECT_EQ(options.error().code, Code::InvalidArgument);
    EXPECT_EQ(options.error().message.find("hunter2"), std::string::npos);
  }
}

TEST(HttpUrl, InvalidUrlIsRejected) {
  for (const char* url :
       {"", "cache.example", "ftp://cache.example", "file:///etc/passwd", "https://", "https:///kiln", "HTTPS//cache",
        "https://cache.example/?token=secret", "https://cache.example/#there", "https://cache.example/a b",
        "https://cache.example/\r\nHost: other", "https://cache\\example"}) {
    const auto options = with_url(url);
    ASSERT_FALSE(options.has_value()) << url;
    EXPECT_EQ(options.error().code, Code::InvalidArgument);
    EXPECT_EQ(options.error().message.find("secret"), std::string::npos);
  }
  EXPECT_FALSE(with_url("https://cache.example/" + std::string(5'000, 'a')).has_value());
}

TEST(HttpUrl, CertificateWithoutKeyIsRejected) {
  HttpOptions options;
  options.url = "https://cache.example";
  options.client_cert = "host.pem";
  EXPECT_EQ(validate_http_options(options).error().code, Code::InvalidArgument);
  options.client_key = "host.key";
  EXPECT_TRUE(validate_http_options(options).has_value());
}

TEST(HttpUrl, TokenIsSentOverPlainHttpToLoopbackOnly) {
  HttpOptions options;
  options.token_file = "token";
  for (const char* url :
       {"https://cache.example", "http://localhost:8080/a", "http://127.0.0.1", "http://[::1]:80/a"}) {
    options.url = url;
    EXPECT_TRUE(validate_http_options(options).has_value()) << url;
  }
  for (const char* url : {"http://cache.example", "http://127.evil.example", "http://localhost.example:80/",
                          "http://10.0.0.1/127.0.0.1"}) {
    options.url = url;
    EXPECT_FALSE(validate_http_options(options).has_value()) << url;
  }
}

}  // namespace
}  // namespace kiln
