// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/scoped_env.hpp"

namespace kiln::test {

/// An environment without settings of AWS tools and with an empty HOME, during its lifetime. Not thread-safe.
class AwsEnvironment {
 public:
  AwsEnvironment() {
    for (const char* name :
         {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION",
          "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_SHARED_CREDENTIALS_FILE",
          "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
          "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
          "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_EC2_METADATA_SERVICE_ENDPOINT"}) {
      set(name, nullptr);
    }
    // A test must not ask the metadata service of the machine that it runs on.
    set("AWS_EC2_METADATA_DISABLED", "true");
    set("HOME", home_.path().c_str());
  }

  void set(const char* name, const char* value) { kept_.push_back(std::make_unique<ScopedEnv>(name, value)); }
  void set_keys(const char* access_key, const char* secret_key) {
    set("AWS_ACCESS_KEY_ID", access_key);
    set("AWS_SECRET_ACCESS_KEY", secret_key);
  }
  std::string home(const std::string& below) const { return home_.path(below); }

  ~AwsEnvironment() {
    // In reverse order, because a variable can be set twice.
    while (!kept_.empty()) kept_.pop_back();
  }
  AwsEnvironment(const AwsEnvironment&) = delete;
  AwsEnvironment& operator=(const AwsEnvironment&) = delete;

 private:
  TemporaryDirectory home_;
  std::vector<std::unique_ptr<ScopedEnv>> kept_;
};

}  // namespace kiln::test
