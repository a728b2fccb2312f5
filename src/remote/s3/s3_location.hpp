// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

namespace kiln {

struct S3Options {
  std::string url;                 ///< s3://bucket or s3://bucket/prefix
  std::optional<bool> path_style;  ///< no value: path style with an endpoint of the user's or a bucket name with dots
  std::string ca_file;             ///< CA certificates to trust instead of the system's
  std::string client_cert;         ///< client certificate for mTLS
  std::string client_key;          ///< key of the client certificate
};

/// The name of a place in S3: a bucket and a prefix of object keys.
struct S3Name {
  std::string bucket;
  std::string prefix;  ///< empty, or ends with a slash
};

/// Parses `s3://bucket/prefix`. Accepts only characters that every version of libcurl signs correctly: letters, digits,
/// `.`, `_`, `~` and `-`, and no path segments that libcurl would change. No message repeats a user or password.
Result<S3Name> parse_s3_url(std::string_view url);

/// Returns the URL of a bucket without a trailing slash: path style `https://host/bucket` or virtual-host style
/// `https://bucket.host`. An empty `endpoint` is that of AWS in the region.
Result<std::string> bucket_url(const std::string& bucket, const std::string& region, std::string endpoint,
                               std::optional<bool> path_style);

/// Percent-encodes all characters except letters, digits, `.`, `_`, `~` and `-`.
std::string encode_query_value(std::string_view text);

}  // namespace kiln
