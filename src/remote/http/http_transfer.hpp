// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "remote/http/curl_library.hpp"
#include "remote/http/http_object_store.hpp"
#include "remote/http/shared_multi.hpp"

namespace kiln {

struct HttpRequest {
  enum class Method : unsigned char { Get, Head, Put, Delete };

  Method method = Method::Get;
  std::string url;
  std::span<const std::string_view> parts;  ///< body of a Put: the concatenation of these parts
  std::uint64_t max_body_bytes = 0;         ///< maximum body size of a successful Get, in bytes

  /// Returns the name for error messages: "GET https://cache.example/kiln/ac/…".
  std::string name() const;
};

struct HttpResponse {
  long status = 0;
  std::string body;  ///< of a Get with status 200; otherwise empty
};

/// Sets the options that all requests of a libcurl handle share. Called once for a new handle.
void configure_handle(const CurlLibrary& curl, CURL* handle, const HttpOptions& options);

/// Performs one request with such a handle on a connection of `multi`. Ends at the deadline. Returns an error with the
/// codes of `ObjectStore` if there was no complete response; any HTTP status is a response. No message contains
/// `token`.
Result<HttpResponse> perform_request(const CurlLibrary& curl, SharedMulti& multi, CURL* handle,
                                     const std::string& token, const HttpRequest& request, const Deadline& deadline);

}  // namespace kiln
