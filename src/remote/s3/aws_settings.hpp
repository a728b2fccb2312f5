// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

namespace kiln {

struct AwsCredentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;           ///< empty for permanent keys
  std::chrono::nanoseconds expires{};  ///< wall time; 0 for keys without a known end

  friend bool operator==(const AwsCredentials&, const AwsCredentials&) = default;
};

/// Returns whether each part has a valid length and only printable characters, so that it fits into a header line.
bool is_valid(const AwsCredentials& credentials);

/// Returns the value of an environment variable, or an empty string if it is not set.
std::string aws_variable(const char* name);

/// The settings of the AWS tools that the user of this process configured.
struct AwsSettings {
  std::string region;                         ///< default us-east-1
  std::string endpoint;                       ///< URL; empty for AWS
  std::optional<AwsCredentials> credentials;  ///< from variables or files; no value if neither contains keys
  std::string unsupported;                    ///< a configured source of credentials that kiln does not support
};

/// Reads the settings by the rules of the AWS tools. Variables (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
/// AWS_SESSION_TOKEN, AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL) override the profile
/// AWS_PROFILE (default `default`) in the files AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and AWS_CONFIG_FILE
/// (~/.aws/config). A file that other users can write is rejected with Code::Denied, as is one with keys that they can
/// read. No message contains a secret.
Result<AwsSettings> read_aws_settings();

/// Returns the settings of one section of such a file, by name. Lines of nested settings are skipped.
std::map<std::string, std::string> parse_aws_section(std::string_view text, std::string_view section);

}  // namespace kiln
