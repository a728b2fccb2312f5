#include "http/http_client.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/process_life.hpp"
#include "remote/secret_file.hpp"

namespace kiln {
namespace {

constexpr std::uint64_t kMostToken = 16 << 10;
// Longer than anybody waits, and short enough for every counter on the way.
constexpr std::chrono::hours kMostTime{24};

Result<std::string> read_token(const std::string& path) {
  const std::optional<FileStamp> stamp = stamp_of(path.c_str());
  if (!stamp || stamp->size > kMostToken) {
    return failure(Code::Unavailable, "there is no token in " + path + ": it should be a file with one line");
  }
  auto secret = read_secret(path);
  if (!secret) return std::move(secret).error();
  std::string line = std::move(*secret).value_or(std::string());
  const bool plain = std::all_of(line.begin(), line.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (line.empty() || !plain) {
    return failure(Code::Unavailable, "the first line of " + path + " is no token: it is empty, or has blanks in it");
  }
  return line;
}

}  // namespace

HttpClient::~HttpClient() {
  // libcurl's TLS library may have ended already, and the connections end with the process anyway.
  if (process_is_ending()) return;
  const MutexLock lock(mutex_);
  for (CURL* handle : idle_) curl_->easy_cleanup(handle);
}

Result<CURL*> HttpClient::take(const Deadline& deadline) {
  const MutexLock lock(mutex_);
  if (!curl_) {
    auto opened = CurlLibrary::open();
    if (!opened) return opened.error();
    curl_ = *opened;
  }
  while (idle_.empty() && made_ == kMostHandles) {
    const auto left = deadline.left();
    if (left <= std::chrono::nanoseconds::zero()) {
      // Not the server's fault: it must not be given up for this.
      return failure(Code::Cancelled, options_.url + ": all connections were in use for as long as one could wait");
    }
    (void)returned_.wait_for(mutex_, left);
  }
  if (!idle_.empty()) {
    CURL* handle = idle_.back();
    idle_.pop_back();
    return handle;
  }
  CURL* handle = curl_->easy_init();
  if (handle == nullptr) return failure(Code::Unavailable, "libcurl has no memory left");
  set_manners(*curl_, handle, options_);
  ++made_;
  return handle;
}

void HttpClient::give_back(CURL* handle) {
  {
    const MutexLock lock(mutex_);
    idle_.push_back(handle);
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

Result<HttpAnswer> HttpClient::send(const HttpRequest& request, std::chrono::nanoseconds limit) {
  const Deadline deadline(system_clock(), std::min<std::chrono::nanoseconds>(limit, kMostTime));
  const Result<std::string> first = token({});
  if (!first) return first.error();
  const Result<CURL*> handle = take(deadline);
  if (!handle) return handle.error();
  std::shared_ptr<const CurlLibrary> curl;
  {
    const MutexLock lock(mutex_);
    curl = curl_;
  }
  Result<HttpAnswer> answer = exchange(*curl, *handle, *first, request, deadline.left());
  if (answer && answer->status == 401 && !first->empty()) {
    const Result<std::string> second = token(*first);
    if (second && *second != *first) {
      answer = exchange(*curl, *handle, *second, request, deadline.left());
    }
  }
  give_back(*handle);
  return answer;
}

}  // namespace kiln
