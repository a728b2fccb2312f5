// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>
#include <set>
#include <thread>

#include "swift_fixture.hpp"

namespace kiln::test {
namespace {

using Bucket = ObjectStore::Bucket;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::seconds kTime{30};

/// Expects that no request is possible, with this cause in the message.
void expect_denied(ObjectStore& store, const testing::Matcher<std::string>& cause) {
  const Digest name = sha256("x");
  const auto found = store.read(Bucket::ActionCache, name, 100, kTime);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, Code::Denied) << found.error().message;
  EXPECT_THAT(found.error().message, AllOf(cause, HasSubstr("; "), Not(HasSubstr("owner-key"))));
  for (const Status& status : {store.write(Bucket::ActionCache, name, {"x"}, kTime), store.probe(kTime),
                               store.remove(Bucket::ActionCache, name, kTime)}) {
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, Code::Denied);
    EXPECT_THAT(status.error().message, cause);
  }
}

TEST_F(SwiftTest, HitMissAndPublish) {
  const auto store = open();
  const Digest name = sha256("body");
  EXPECT_EQ(store->read(Bucket::Cas, name, 100, kTime).value(), std::nullopt);
  ASSERT_TRUE(store->write(Bucket::Cas, name, {"bo", "", "dy"}, kTime).has_value());
  EXPECT_EQ(store->read(Bucket::Cas, name, 100, kTime).value()->view(), "body");
  EXPECT_EQ(open()->read(Bucket::Cas, name, 100, kTime).value()->view(), "body");
  EXPECT_EQ(store->read(Bucket::ActionCache, name, 100, kTime).value(), std::nullopt);
  EXPECT_EQ(store->describe(), "s3://kiln-test/HitMissAndPublish/team");
}

TEST_F(SwiftTest, RequestsWithSessionTokenAreAccepted) {
  environment_.set("AWS_SESSION_TOKEN", "a+session/token==");
  const auto store = open();
  ASSERT_TRUE(store->write(Bucket::Cas, sha256("body"), {"body"}, kTime).has_value());
  EXPECT_EQ(store->read(Bucket::Cas, sha256("body"), 100, kTime).value()->view(), "body");
}

TEST_F(SwiftTest, WrongSecretKeyIsDenied) {
  environment_.set_keys(Swift::kOwner, "wrong");
  expect_denied(*open(), HasSubstr("SignatureDoesNotMatch"));
}

TEST_F(SwiftTest, UnknownAccessKeyIsDenied) {
  environment_.set_keys("test:unknown", "owner-key");
  expect_denied(*open(), HasSubstr("access key"));
}

TEST_F(SwiftTest, UserWithoutRightsIsDenied) {
  environment_.set_keys(Swift::kOther, Swift::kOtherKey);
  expect_denied(*open(), AllOf(HasSubstr("AccessDenied"), HasSubstr("s3:GetObject")));
}

TEST_F(SwiftTest, MissingBucketIsNoMiss) { expect_denied(*open("no-such-bucket"), HasSubstr("NoSuchBucket")); }

TEST_F(SwiftTest, WrongRegionIsNamed) {
  environment_.set("AWS_REGION", "eu-west-1");
  expect_denied(*open(), AllOf(HasSubstr("'eu-west-1'"), HasSubstr("set AWS_REGION to 'us-east-1'")));
}

// Runs in the child of WrongClockIsDenied, whose clock is two hours fast.
TEST(DISABLED_WrongClock, ChildIsDenied) {
  S3Options options;
  options.url = "s3://kiln-test/clock";
  expect_denied(*open_s3_object_store(options).value(),
                AllOf(HasSubstr("RequestTimeTooSkewed"), HasSubstr("the clock of this host")));
}

TEST_F(SwiftTest, WrongClockIsDenied) {
  const ScopedEnv preload("LD_PRELOAD", "/usr/$LIB/faketime/libfaketimeMT.so.1");
  const ScopedEnv skew("FAKETIME", "+2h");
  const ScopedEnv steady("FAKETIME_DONT_FAKE_MONOTONIC", "1");
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  // NOLINTNEXTLINE(concurrency-mt-unsafe, cert-env33-c): the test has one thread, and the command is its own program
  EXPECT_EQ(std::system((self + " --gtest_also_run_disabled_tests --gtest_filter=DISABLED_WrongClock.*").c_str()), 0);
}

TEST_F(SwiftTest, SilentServerTimesOut) {
  const auto store = open();
  ASSERT_TRUE(store->probe(kTime).has_value());
  swift_->pause();
  const auto start = std::chrono::steady_clock::now();
  const auto found = store->read(Bucket::Cas, sha256("x"), 100, std::chrono::milliseconds(100));
  const auto passed = std::chrono::steady_clock::now() - start;
  swift_->resume();
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, Code::TimedOut) << found.error().message;
  EXPECT_LT(passed, std::chrono::seconds(5));
  EXPECT_TRUE(store->probe(kTime).has_value());
}

TEST_F(SwiftTest, RejectedKeysAreReadAgain) {
  environment_.set_keys(nullptr, nullptr);
  const std::string path = environment_.home("credentials");
  environment_.set("AWS_SHARED_CREDENTIALS_FILE", path.c_str());
  const auto write_keys = [&](const std::string& secret) {
    write_secret(path, "[default]\naws_access_key_id = test:owner\naws_secret_access_key = " + secret + "\n");
  };
  write_keys("first");
  const auto store = open();
  EXPECT_FALSE(store->probe(kTime).has_value());
  write_keys("owner-key");
  EXPECT_TRUE(store->probe(kTime).has_value());
}

TEST_F(SwiftTest, ListsSeveralPages) {
  constexpr int kObjects = 60;  // a page of swift_server.py has 50
  const auto store = open();
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = writer; i < kObjects; i += 4) {
        EXPECT_TRUE(store->write(Bucket::ActionCache, sha256(std::to_string(i)), {"12345"}, kTime).has_value());
      }
    });
  }
  for (std::thread& one : writers) one.join();
  const auto listed = store->list(Bucket::ActionCache, kTime);
  ASSERT_TRUE(listed.has_value()) << listed.error().message;
  std::set<std::string> names;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  for (const auto& one : *listed) {
    names.insert(one.name.hex());
    EXPECT_EQ(one.bytes, 5U);
    EXPECT_LT(now - one.modified, std::chrono::hours(1));
  }
  EXPECT_EQ(names.size(), std::size_t{kObjects});
  EXPECT_EQ(listed->size(), std::size_t{kObjects});
  EXPECT_TRUE(store->has_bucket(Bucket::ActionCache, kTime).value());
  EXPECT_FALSE(store->has_bucket(Bucket::Cas, kTime).value());
}

}  // namespace
}  // namespace kiln::test
