// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "remote/http/curl_library.hpp"
#include "remote/http/http_object_store.hpp"
#include "remote/http/shared_multi.hpp"

namespace kiln {

/// Keys with which libcurl signs a request for S3 (AWS Signature Version 4).
struct AwsSigningKey {
  std::string region;
  std::string access_key;
  std::string secret_key;
};

struct HttpRequest {
  enum class Method : unsigned char { Get, Head, Put, Delete };

  Method method = Method::Get;
  std::string url;
  std::span<const std::string_view> parts;  ///< body of a Put: the concatenation of these parts
  std::uint64_t max_body_bytes = 0;         ///< maximum body size of a successful Get, in bytes
  std::vector<std::string> headers;         ///< more header lines; may contain secrets
  const AwsSigningKey* signing = nullptr;   ///< signs the request; must outlive it
  std::uint64_t max_other_bytes = 0;        ///< maximum number of bytes kept of the body of any other response

  /// Returns the name for error messages: "GET https://cache.example/kiln/ac/…".
  std::string name() const;
};

struct HttpResponse {
  long status = 0;
  std::string body;  ///< of a Get with status 200; otherwise its first HttpRequest::max_other_bytes
};

/// Sets the options that all requests of a libcurl handle share. Called once for a new handle.
void configure_handle(const CurlLibrary& curl, CURL* handle, const HttpOptions& options);

/// Performs one request with such a handle on a connection of `multi`. Ends at the deadline. Returns an error with the
/// codes of `ObjectStore` if there was no complete response; any HTTP status is a response. No message contains
/// `token` or a header of the request. Code::Unsupported if libcurl is too old to sign.
Result<HttpResponse> perform_request(const CurlLibrary& curl, SharedMulti& multi, CURL* handle,
                                     const std::string& token, const HttpRequest& request, const Deadline& deadline);

}  // namespace kiln
