// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "aws_environment.hpp"
#include "base/hash.hpp"
#include "remote/http/http_client.hpp"
#include "remote/s3/s3_object_store.hpp"
#include "support/servers/swift.hpp"

namespace kiln::test {

/// Returns this process's Swift with the bucket `kiln-test`: starting one takes seconds.
inline Swift& shared_swift() {
  static const std::unique_ptr<Swift> swift = [] {
    auto started = std::make_unique<Swift>();
    HttpClient client({started->url(), {}, {}, {}, {}});
    const AwsSigningKey key{"us-east-1", Swift::kOwner, Swift::kOwnerKey};
    HttpRequest create{HttpRequest::Method::Put, started->url() + "/kiln-test", {}, 0};
    create.headers.push_back("x-amz-content-sha256: " + sha256("").hex());
    create.signing = &key;
    create.max_other_bytes = 4096;
    const auto created = client.send(create, std::chrono::seconds(60));
    if (!created || created->status != 200) {
      throw std::runtime_error("cannot create a bucket: " + (created ? created->body : created.error().message));
    }
    return started;
  }();
  return *swift;
}

/// A test with a bucket of the shared Swift and the keys of its owner in the environment.
class SwiftTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = Swift::unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    swift_ = &shared_swift();
    environment_.set("AWS_ENDPOINT_URL_S3", swift_->url().c_str());
    environment_.set_keys(Swift::kOwner, Swift::kOwnerKey);
  }
  /// Opens a store below a prefix that no other test uses.
  std::unique_ptr<ObjectStore> open(const std::string& bucket = "kiln-test") const {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    S3Options options;
    options.url = "s3://" + bucket + "/" + test->name() + "/team";
    return open_s3_object_store(options).value();
  }

  AwsEnvironment environment_;
  Swift* swift_ = nullptr;
};

}  // namespace kiln::test
