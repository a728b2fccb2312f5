#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "http/http_exchange.hpp"

namespace kiln {

/// Requests to one server: a few handles, each with a connection that is kept, and the token. Any thread; more callers
/// than handles wait for one another, within their limits. Belongs to the process that made it (PerProcess): a
/// connection must not be used on both sides of a fork.
class HttpClient {
 public:
  /// Also the number of connections that a process may have with a server.
  static constexpr std::size_t kMostHandles = 16;

  explicit HttpClient(const HttpOptions& options) : options_(options) {}
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Asks again, once, with a newly read token where the server does not know the old one any more (401).
  Result<HttpAnswer> send(const HttpRequest& request, std::chrono::nanoseconds limit);

 private:
  Result<CURL*> take(const Deadline& deadline);
  void give_back(CURL* handle);
  /// What is sent; read from its file when there is none yet, or when `stale` is what we have. Empty without a file.
  Result<std::string> token(const std::string& stale);

  const HttpOptions options_;
  Mutex mutex_;
  Condition returned_;
  std::shared_ptr<const CurlLibrary> curl_ KILN_GUARDED_BY(mutex_);
  std::vector<CURL*> idle_ KILN_GUARDED_BY(mutex_);  // the one that was used last is used next: its connection lives
  std::size_t made_ KILN_GUARDED_BY(mutex_) = 0;
  std::string token_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
