#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

#include "http/curl_library.hpp"
#include "http/http_depot.hpp"

namespace kiln {

struct HttpRequest {
  enum class Method : unsigned char { Get, Head, Put, Delete };

  Method method = Method::Get;
  std::string url;
  std::span<const std::string_view> parts;  ///< of the body of a Put, joined
  std::uint64_t most = 0;                   ///< bytes that the body of a good answer to a Get may have

  /// What errors call it: "GET https://cache.example/kiln/ac/…".
  std::string name() const;
};

struct HttpAnswer {
  long status = 0;
  std::string body;  ///< of a Get that was answered with 200; else nothing: nobody reads error pages
};

/// What is the same for every request of a handle of libcurl's: to be called once, when it is new.
void set_manners(const CurlLibrary& curl, CURL* handle, const HttpOptions& options);

/// One request and its answer on such a handle, which keeps its connection for the next. Ends within `limit`. An error
/// where there was no whole answer, by Depot's codes; a status is an answer whatever it says. `token` is in no message.
Result<HttpAnswer> exchange(const CurlLibrary& curl, CURL* handle, const std::string& token, const HttpRequest& request,
                            std::chrono::nanoseconds limit);

}  // namespace kiln
