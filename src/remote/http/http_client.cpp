// SPDX-License-Identifier: Apache-2.0
#include "remote/http/http_client.hpp"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <new>

#include "base/error.hpp"
#include "base/process/process_lifecycle.hpp"
#include "remote/secret_file.hpp"

namespace kiln {
namespace {

constexpr std::uint64_t kMaxTokenLength = 16 << 10;

Result<std::string> read_token(const std::string& path) {
  auto secret = read_secret(path);
  if (!secret) return std::move(secret).error();
  if (!*secret || (*secret)->size() > kMaxTokenLength) {
    return make_error(Code::Unavailable, "no token in " + path + ": expected a file with one line");
  }
  std::string line = std::move(*secret).value_or(std::string());
  const bool plain = std::all_of(line.begin(), line.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (line.empty() || !plain) {
    return make_error(Code::Unavailable,
                      "the first line of " + path + " is not a token: it is empty or contains spaces");
  }
  return line;
}

/// Postpones pthread_cancel of this thread: other callers would wait for a canceled driver without end.
class ScopedCancelBlock {
 public:
  ScopedCancelBlock() { (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~ScopedCancelBlock() { (void)pthread_setcancelstate(before_, nullptr); }
  ScopedCancelBlock(const ScopedCancelBlock&) = delete;
  ScopedCancelBlock& operator=(const ScopedCancelBlock&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace

/// A handle that is given back at the end of its scope, also after an exception.
class HttpClient::Lease {
 public:
  Lease(HttpClient& client, CURL* handle) : client_(client), handle_(handle) {}
  ~Lease() { client_.give_back(handle_); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

 private:
  HttpClient& client_;
  CURL* const handle_;
};

HttpClient::~HttpClient() {
  // libcurl's TLS library may already be cleaned up, and the connections end with the process anyway.
  if (process_is_ending()) return;
  const MutexLock lock(mutex_);
  for (CURL* handle : idle_) curl_->easy_cleanup(handle);
}

Status HttpClient::open() {
  if (multi_) return {};
  auto curl = CurlLibrary::open();
  if (!curl) return curl.error();
  auto multi = SharedMulti::open(*curl, options_.url.starts_with("https:"));
  if (!multi) return multi.error();
  curl_ = *std::move(curl);
  multi_ = *std::move(multi);
  return {};
}

Result<CURL*> HttpClient::take(const Deadline& deadline) {
  const MutexLock lock(mutex_);
  if (const Status opened = open(); !opened) return opened.error();
  while (used_ >= multi_->max_transfers()) {
    if (deadline.remaining() <= std::chrono::nanoseconds::zero()) {
      // Not the server's fault: this must not open its circuit.
      return make_error(Code::Cancelled,
                        options_.url + ": timed out waiting for a connection, all of which are in use");
    }
    ++waiting_;
    system_clock().wait_until(returned_, mutex_, deadline);
    --waiting_;
  }
  if (idle_.empty()) {
    idle_.reserve(used_ + 1);  // so that `give_back` needs no memory
    std::unique_ptr<void, void (*)(CURL*)> owned(curl_->easy_init(), curl_->easy_cleanup);
    if (owned == nullptr) throw std::bad_alloc();
    configure_handle(*curl_, owned.get(), options_);
    idle_.push_back(owned.release());
  }
  CURL* const handle = idle_.back();
  idle_.pop_back();
  ++used_;
  // A caller can wait although there is room: the limit grows when the server turns out to use HTTP/2.
  if (waiting_ != 0 && used_ < multi_->max_transfers()) returned_.notify_one();
  return handle;
}

void HttpClient::give_back(CURL* handle) noexcept {
  {
    const MutexLock lock(mutex_);
    idle_.push_back(handle);
    --used_;
  }
  returned_.notify_one();
}

Result<std::string> HttpClient::token(const std::string& stale) {
  if (options_.token_file.empty()) return std::string();
  {
    const MutexLock lock(mutex_);
    if (!token_.empty() && token_ != stale) return token_;
  }
  auto read = read_token(options_.token_file);
  if (!read) return read;
  const MutexLock lock(mutex_);
  return token_ = *std::move(read);
}

Result<HttpResponse> HttpClient::send(const HttpRequest& request, const Deadline& deadline) {
  const ScopedCancelBlock not_canceled;
  const Result<std::string> first = token({});
  if (!first) return first.error();
  const Result<CURL*> handle = take(deadline);
  if (!handle) return handle.error();
  const Lease lease(*this, *handle);
  std::shared_ptr<const CurlLibrary> curl;
  SharedMulti* multi = nullptr;
  {
    const MutexLock lock(mutex_);
    curl = curl_;
    multi = multi_.get();
  }
  Result<HttpResponse> answer = perform_request(*curl, *multi, *handle, *first, request, deadline);
  if (answer && answer->status == 401 && !first->empty()) {
    const Result<std::string> second = token(*first);
    if (second && *second != *first) {
      answer = perform_request(*curl, *multi, *handle, *second, request, deadline);
    }
  }
  return answer;
}

}  // namespace kiln
