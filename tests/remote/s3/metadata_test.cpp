// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <atomic>
#include <string>
#include <thread>

#include "aws_environment.hpp"
#include "metadata_server.hpp"
#include "remote/s3/metadata_credentials.hpp"
#include "remote/s3/metadata_service.hpp"
#include "remote/s3/s3_object_store.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/files.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::seconds kTime{30};

std::string keys_json(const std::string& name, std::chrono::nanoseconds expires) {
  return R"({"Code": "Success", "AccessKeyId": ")" + name +
         R"(", "SecretAccessKey": "s", "Token": "t", "Expiration": ")" + format_utc(expires) + R"("})";
}
std::chrono::nanoseconds in(std::chrono::nanoseconds time) { return system_clock().wall() + time; }

class MetadataTest : public testing::Test {
 protected:
  /// Serves the instance metadata of a role, only to requests with a session token.
  static std::string instance_answer(const std::string& request) {
    if (request.starts_with("PUT /latest/api/token ")) {
      return request.find("X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n") != std::string::npos ? "session" : "";
    }
    if (request.find("X-aws-ec2-metadata-token: session\r\n") == std::string::npos) return "";
    if (request.starts_with("GET /latest/meta-data/iam/security-credentials/ ")) return "a-role";
    if (request.starts_with("GET /latest/meta-data/iam/security-credentials/a-role ")) {
      return keys_json("instance", in(std::chrono::hours(6)));
    }
    return "";
  }
  MetadataService found() const { return find_metadata_service().value().value(); }

  AwsEnvironment environment_;
};

TEST_F(MetadataTest, InstanceKeysAreFetchedWithSessionToken) {
  const MetadataServer server(&instance_answer);
  environment_.set("AWS_EC2_METADATA_DISABLED", nullptr);
  environment_.set("AWS_EC2_METADATA_SERVICE_ENDPOINT", (server.url() + "/").c_str());
  const auto keys = fetch_credentials(found(), kTime);
  ASSERT_TRUE(keys.has_value()) << keys.error().message;
  EXPECT_EQ(keys->access_key, "instance");
  EXPECT_EQ(keys->secret_key, "s");
  EXPECT_EQ(keys->session_token, "t");
  EXPECT_GT(keys->expires, in(std::chrono::hours(5)));
}

TEST_F(MetadataTest, InstanceServiceIsDefaultUnlessDisabled) {
  EXPECT_FALSE(find_metadata_service().value().has_value());
  environment_.set("AWS_EC2_METADATA_DISABLED", "false");
  EXPECT_EQ(found().url, "http://169.254.169.254");
  EXPECT_TRUE(found().is_instance);
}

TEST_F(MetadataTest, ContainerKeysAreFetchedWithAuthorization) {
  const MetadataServer server([](const std::string& request) {
    return request.find("Authorization: Basic abc\r\n") != std::string::npos
               ? keys_json("container", in(std::chrono::hours(1)))
               : "";
  });
  environment_.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", (server.url() + "/v2/private-path").c_str());
  const auto denied = fetch_credentials(found(), kTime);
  ASSERT_FALSE(denied.has_value());
  EXPECT_THAT(denied.error().message, AllOf(HasSubstr("HTTP status 404"), Not(HasSubstr("private-path"))));
  environment_.set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic abc");
  EXPECT_EQ(fetch_credentials(found(), kTime).value().access_key, "container");
  write_secret(environment_.home("token"), "Basic abc\n");
  environment_.set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "old");
  environment_.set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", environment_.home("token").c_str());
  EXPECT_EQ(fetch_credentials(found(), kTime).value().access_key, "container");
}

TEST_F(MetadataTest, ContainerServiceMustBeLocalOrEncrypted) {
  environment_.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/id");
  EXPECT_EQ(found().url, "http://169.254.170.2/v2/id");
  environment_.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", nullptr);
  for (const char* url : {"https://any.example/x", "http://localhost:1/x", "http://169.254.170.23/v1/credentials",
                          "http://[fd00:ec2::23]/v1/credentials", "http://127.0.0.1"}) {
    environment_.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
    EXPECT_EQ(found().url, url);
  }
  for (const char* url : {"http://any.example/x", "http://169.254.170.2.any.example/", "http://127.0.0.1@any.example/",
                          "ftp://localhost/", "http://169.254.1.1/"}) {
    environment_.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
    EXPECT_FALSE(find_metadata_service().has_value()) << url;
  }
}

TEST_F(MetadataTest, RejectsOtherAnswers) {
  for (const char* text :
       {"", "x", "[]", "{}", R"({"AccessKeyId": "a"})", R"({"AccessKeyId": 1, "SecretAccessKey": "b"})",
        R"({"AccessKeyId": "a", "SecretAccessKey": "b\n"})"}) {
    EXPECT_FALSE(parse_credentials(text).has_value()) << text;
  }
  EXPECT_TRUE(parse_credentials(R"({"AccessKeyId": "a", "SecretAccessKey": "b"})").has_value());
}

TEST_F(MetadataTest, KeysAreRenewedBeforeTheyExpire) {
  std::atomic<int> fetches = 0;
  ManualClock clock;
  const MetadataServer server([&](const std::string&) {
    return keys_json("key" + std::to_string(++fetches), clock.wall() + std::chrono::hours(1));
  });
  environment_.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url().c_str());
  MetadataCredentials keys(found(), clock);
  EXPECT_EQ(keys.get(kTime).value().access_key, "key1");
  clock.advance(std::chrono::minutes(54));
  EXPECT_EQ(keys.get(kTime).value().access_key, "key1");
  EXPECT_EQ(fetches, 1);
  clock.advance(std::chrono::minutes(2));
  EXPECT_EQ(keys.get(kTime).value().access_key, "key1") << "the old keys are used while new ones are fetched";
  EXPECT_TRUE(eventually([&] { return keys.get(kTime).value().access_key == "key2"; }));
  // Keys that the server rejected are replaced too.
  clock.advance(MetadataCredentials::kRetryAfter);
  keys.drop(keys.get(kTime).value());
  EXPECT_EQ(keys.get(kTime).value().access_key, "key3");
}

TEST_F(MetadataTest, SlowServiceDelaysNoRequest) {
  std::atomic<bool> may_answer = false;
  const MetadataServer server([&](const std::string&) {
    (void)eventually([&] { return may_answer.load(); });
    return keys_json("late", in(std::chrono::hours(1)));
  });
  environment_.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url().c_str());
  environment_.set("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1");
  S3Options options;
  options.url = "s3://kiln-test";
  const auto store = open_s3_object_store(options).value();
  const Status early = store->probe(std::chrono::milliseconds(100));
  ASSERT_FALSE(early.has_value());
  EXPECT_EQ(early.error().code, Code::Cancelled) << "it says nothing about the store: " << early.error().message;
  may_answer = true;
  // With keys the request reaches the store, which does not run.
  EXPECT_TRUE(eventually([&] { return store->probe(std::chrono::seconds(4)).error().code == Code::Unavailable; }));
}

TEST_F(MetadataTest, MissingServiceIsUnavailable) {
  environment_.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/private-path");
  MetadataCredentials keys(found(), system_clock());
  const auto got = keys.get(kTime);
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, Code::Unavailable);
  EXPECT_THAT(got.error().message, AllOf(HasSubstr("no AWS credentials: "), Not(HasSubstr("private-path"))));
}

TEST_F(MetadataTest, FileKeysComeBeforeMetadata) {
  environment_.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://any.example/");
  environment_.set_keys("a", "b");
  environment_.set("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1");
  S3Options options;
  options.url = "s3://kiln-test";
  const auto store = open_s3_object_store(options).value();
  EXPECT_EQ(store->probe(kTime).error().code, Code::Unavailable);
  environment_.set_keys(nullptr, nullptr);
  EXPECT_EQ(open_s3_object_store(options).value()->probe(kTime).error().code, Code::InvalidArgument);
}

TEST_F(MetadataTest, SessionTokenAndDigestAreSigned) {
  const MetadataServer server([](const std::string&) { return "body"; });
  environment_.set_keys("a", "secret");
  environment_.set("AWS_SESSION_TOKEN", "token");
  environment_.set("AWS_ENDPOINT_URL_S3", server.url().c_str());
  S3Options options;
  options.url = "s3://kiln-test";
  ASSERT_TRUE(open_s3_object_store(options).value()->probe(kTime).has_value());
  const std::string request = server.requests().at(0);
  EXPECT_THAT(request, HasSubstr("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"));
  EXPECT_THAT(request, AllOf(HasSubstr("x-amz-security-token: token\r\n"), Not(HasSubstr("secret"))));
}

TEST_F(MetadataTest, NoSourceOfKeysIsDenied) {
  S3Options options;
  options.url = "s3://kiln-test";
  environment_.set("AWS_WEB_IDENTITY_TOKEN_FILE", "/token");
  const Status probed = open_s3_object_store(options).value()->probe(kTime);
  EXPECT_EQ(probed.error().code, Code::Denied);
  EXPECT_THAT(probed.error().message, HasSubstr("AWS_WEB_IDENTITY_TOKEN_FILE is not supported"));
}

}  // namespace
}  // namespace kiln::test
