// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "remote/http/http_transfer.hpp"
#include "remote/http/shared_multi.hpp"

namespace kiln {

/// A client of one server with persistent connections, a limited number of handles, and the token. If all handles are
/// in use, callers wait for one until their deadlines. An instance belongs to the process that created it (PerProcess):
/// a connection must not be used on both sides of a fork. Thread-safe.
class HttpClient {
 public:
  explicit HttpClient(const HttpOptions& options) : options_(options) {}
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Sends a request. If the server rejects the token (401), reads the token file again and retries once.
  Result<HttpResponse> send(const HttpRequest& request, const Deadline& deadline);

 private:
  /// Loads libcurl if that has not happened yet.
  Status open() KILN_REQUIRES(mutex_);
  Result<CURL*> take(const Deadline& deadline);
  void give_back(CURL* handle) noexcept;
  /// Gives a handle back, also if memory is exhausted.
  struct ScopedHandle {
    HttpClient& client;
    CURL* const handle;
    ~ScopedHandle() { client.give_back(handle); }
  };
  /// Returns the token, or an empty string without a token file. Reads the file if no token is cached or the cached one
  /// equals `stale`.
  Result<std::string> token(const std::string& stale);

  const HttpOptions options_;
  Mutex mutex_;
  Condition returned_;
  std::shared_ptr<const CurlLibrary> curl_ KILN_GUARDED_BY(mutex_);
  std::unique_ptr<SharedMulti> multi_ KILN_GUARDED_BY(mutex_);  // once set, constant
  std::vector<CURL*> idle_ KILN_GUARDED_BY(mutex_);
  std::size_t used_ KILN_GUARDED_BY(mutex_) = 0;  // handles that callers have
  std::string token_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
