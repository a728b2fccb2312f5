// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

namespace kiln {

/// Number of bytes of an error response that are parsed.
constexpr std::size_t kMaxS3Error = 16 << 10;

/// An error response of an S3 server.
struct S3Failure {
  long status = 0;
  std::string code;    ///< such as NoSuchKey; empty if the response is not XML of S3
  std::string region;  ///< region of the bucket, if the response names it

  /// Returns whether the response means that the object is missing. A missing bucket is an error.
  bool is_absent() const { return (status == 404 && (code.empty() || code == "NoSuchKey")) || status == 410; }
  /// Returns whether other credentials might be accepted.
  bool rejects_credentials() const;
};

/// Parses the body of an unsuccessful response. Text from the server that is not a plain word is dropped.
S3Failure parse_s3_failure(long status, std::string_view body);

/// Returns the error with the codes of `ObjectStore`, the cause and the next step. `request` is the name of the
/// request, `region` the one it was signed for.
Error s3_error(const std::string& request, const S3Failure& failure, const std::string& region);

}  // namespace kiln
