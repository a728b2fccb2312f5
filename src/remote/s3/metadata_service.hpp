// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "remote/s3/aws_settings.hpp"

namespace kiln {

/// A service of this machine that issues temporary keys: that of a container (ECS, EKS) or of an instance (EC2).
struct MetadataService {
  std::string url;  ///< of a container's keys, or of the instance metadata
  bool is_instance = false;
  std::string token;       ///< Authorization header of a container
  std::string token_file;  ///< the file that contains it, instead; read for each fetch
};

/// Returns the service that the environment names, or that of the instance: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI,
/// AWS_CONTAINER_CREDENTIALS_FULL_URI, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, AWS_CONTAINER_AUTHORIZATION_TOKEN,
/// AWS_EC2_METADATA_SERVICE_ENDPOINT. Returns nothing if AWS_EC2_METADATA_DISABLED is set. Returns
/// Code::InvalidArgument for a plain HTTP URL of a container that is neither the loopback nor a link-local address of
/// AWS.
Result<std::optional<MetadataService>> find_metadata_service();

/// Fetches keys; from an instance with a session token (IMDSv2). No message contains a secret.
Result<AwsCredentials> fetch_credentials(const MetadataService& service, const Deadline& deadline);

/// Parses the JSON of such a service. Returns nothing for other text.
std::optional<AwsCredentials> parse_credentials(std::string_view text);

}  // namespace kiln
