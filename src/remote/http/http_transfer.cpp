// SPDX-License-Identifier: Apache-2.0
#include "remote/http/http_transfer.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>
#include <optional>

#include <kiln/version.hpp>

#include "base/error.hpp"

namespace kiln {
namespace {

constexpr std::size_t kMaxHeaders = 64 << 10;
// Error pages are read up to this size, so that the connection can be reused.
constexpr std::uint64_t kMaxIgnored = 64 << 10;
constexpr std::uint64_t kMaxReserved = 16 << 20;
// Longer than any caller waits, and small enough not to overflow libcurl's timeouts.
constexpr std::chrono::hours kMaxTime{24};
constexpr unsigned kMaxUnconfirmed = 20'000;  // milliseconds
// Older versions do not sign the headers that S3 requires.
constexpr unsigned kMinSigningVersion = 0x075800;
// CURLOPT_AWS_SIGV4, which is missing in headers older than 7.75.
constexpr auto kAwsSigv4 = static_cast<CURLoption>(CURLOPTTYPE_OBJECTPOINT + 305);

/// The state of one transfer, which libcurl passes to the callbacks.
struct TransferState {
  const CurlLibrary& curl;
  CURL* handle;
  const HttpRequest& request;
  long status = 0;
  std::uint64_t stated = 0;  // Content-Length
  std::uint64_t ignored = 0;
  std::size_t headers = 0;
  std::string body;
  bool too_long = false;  // a successful response or its headers exceed the limit
  bool enough = false;    // enough of an error page was read
  bool no_memory = false;
  std::size_t part = 0;  // index of the part to send, and the position in it
  std::size_t position = 0;

  bool wanted() const { return request.method == HttpRequest::Method::Get && status == 200; }
};

/// Runs a part of a callback. Returns false if memory is exhausted: the exception must not pass through libcurl, nor
/// through the caller that moves the data, which can be another one (SharedMulti).
template <class Part>
bool has_memory_for(TransferState& course, const Part& part) noexcept {
  try {
    part();
  } catch (const std::exception&) {
    course.no_memory = true;
  }
  return !course.no_memory;
}

std::uint64_t length_in(std::string_view line) {
  constexpr std::string_view kName = "content-length:";
  if (line.size() < kName.size() || strncasecmp(line.data(), kName.data(), kName.size()) != 0) return 0;
  line.remove_prefix(kName.size());
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  std::uint64_t length = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), length);
  return error == std::errc::result_out_of_range ? UINT64_MAX : length;
}

std::size_t on_header(char* data, std::size_t, std::size_t size, void* user) {
  TransferState& course = *static_cast<TransferState*>(user);
  const std::string_view line(data, size);
  course.headers += size;
  if (course.headers > kMaxHeaders) {
    course.too_long = true;
    return 0;
  }
  if (const std::uint64_t length = length_in(line)) course.stated = length;
  if (line != "\r\n" && line != "\n") return size;
  (void)course.curl.easy_getinfo(course.handle, CURLINFO_RESPONSE_CODE, &course.status);
  if (course.wanted() && course.stated > course.request.max_body_bytes) {
    course.too_long = true;
    return 0;
  }
  if (!course.wanted()) return size;
  const std::uint64_t expected = std::min({course.stated, course.request.max_body_bytes, kMaxReserved});
  return has_memory_for(course, [&] { course.body.reserve(expected); }) ? size : 0;
}

std::size_t on_body(char* data, std::size_t, std::size_t size, void* user) {
  TransferState& course = *static_cast<TransferState*>(user);
  if (!course.wanted()) {
    if (course.body.size() < course.request.max_other_bytes) {
      const std::size_t kept = std::min<std::size_t>(size, course.request.max_other_bytes - course.body.size());
      if (!has_memory_for(course, [&] { course.body.append(data, kept); })) return 0;
    }
    course.ignored += size;
    course.enough = course.ignored > kMaxIgnored;
    return course.enough ? 0 : size;
  }
  if (size > course.request.max_body_bytes - course.body.size()) {
    course.too_long = true;
    return 0;
  }
  return has_memory_for(course, [&] { course.body.append(data, size); }) ? size : 0;
}

std::size_t on_send(char* data, std::size_t, std::size_t room, void* user) {
  TransferState& course = *static_cast<TransferState*>(user);
  std::size_t sent = 0;
  while (sent < room && course.part < course.request.parts.size()) {
    const std::string_view rest = course.request.parts[course.part].substr(course.position);
    const std::size_t some = std::min(rest.size(), room - sent);
    std::memcpy(data + sent, rest.data(), some);
    sent += some;
    course.position += some;
    if (some == rest.size()) {
      ++course.part;
      course.position = 0;
    }
  }
  return sent;
}

/// Rewinds the upload if a persistent connection turns out to be closed and libcurl sends everything again on a new
/// one.
int on_seek(void* user, curl_off_t offset, int origin) {
  TransferState& course = *static_cast<TransferState*>(user);
  if (offset != 0 || origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  course.part = 0;
  course.position = 0;
  return CURL_SEEKFUNC_OK;
}

/// Blocks SIGPIPE on this thread during a transfer: older TLS libraries use plain writes, which raise it on a closed
/// connection.
class ScopedSigpipeBlock {
 public:
  ScopedSigpipeBlock() {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~ScopedSigpipeBlock() {
    const timespec now{};
    if (!was_pending_) (void)sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  ScopedSigpipeBlock(const ScopedSigpipeBlock&) = delete;
  ScopedSigpipeBlock& operator=(const ScopedSigpipeBlock&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

/// Lets the kernel close a connection whose packets the server no longer confirms. Over HTTP/2 a timeout ends only the
/// request, and later requests would use the connection again.
int on_socket(void*, curl_socket_t socket, curlsocktype) {
  (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kMaxUnconfirmed, sizeof kMaxUnconfirmed);
  return CURL_SOCKOPT_OK;
}

Code code_of(CURLcode code) {
  switch (code) {
    case CURLE_ABORTED_BY_CALLBACK: return Code::Cancelled;
    case CURLE_OPERATION_TIMEDOUT: return Code::TimedOut;
    case CURLE_PARTIAL_FILE:          // truncated
    case CURLE_WEIRD_SERVER_REPLY:    // not HTTP
    case CURLE_UNSUPPORTED_PROTOCOL:  // not HTTP either: HTTP 0.9 accepts any bytes
    case CURLE_BAD_CONTENT_ENCODING: return Code::Corrupt;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR: return Code::Denied;
    default: return Code::Unavailable;
  }
}

Error broken(const CurlLibrary& curl, const HttpRequest& request, CURLcode code, const char* details) {
  std::string reason = details[0] != '\0' ? details : curl.easy_strerror(code);
  if (code == CURLE_PEER_FAILED_VERIFICATION) {
    reason = "the server's certificate is not trusted (" + reason + "); set remote.ca to the CA that issued it";
  }
  return make_error(code_of(code), request.name() + ": " + reason);
}

/// Sets an option. Throws std::bad_alloc if memory is exhausted: without some options the request would not be safe.
template <class Value>
CURLcode set_option(const CurlLibrary& curl, CURL* handle, CURLoption option, Value value) {
  const CURLcode code = curl.easy_setopt(handle, option, value);
  if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  return code;
}

/// Makes libcurl sign the request, or with null forget the keys of the previous request.
Status set_signing(const CurlLibrary& curl, CURL* handle, const AwsSigningKey* key) {
  const auto set = [&](CURLoption option, const char* value) { return set_option(curl, handle, option, value); };
  const std::string provider = key != nullptr ? "aws:amz:" + key->region + ":s3" : std::string();
  const curl_version_info_data& used = *curl.version_info(CURLVERSION_NOW);
  if (key != nullptr && (used.version_num < kMinSigningVersion || set(kAwsSigv4, provider.c_str()) != CURLE_OK)) {
    return make_error(Code::Unsupported, "libcurl " + std::string(used.version) +
                                             " cannot sign requests for S3; install libcurl 7.88 or newer");
  }
  if (key == nullptr) (void)set(kAwsSigv4, nullptr);
  (void)curl.easy_setopt(handle, CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
  (void)set(CURLOPT_USERNAME, key != nullptr ? key->access_key.c_str() : nullptr);
  (void)set(CURLOPT_PASSWORD, key != nullptr ? key->secret_key.c_str() : nullptr);
  return {};
}

void set_request(const CurlLibrary& curl, CURL* handle, TransferState& course) {
  const auto set = [&](CURLoption option, auto value) { (void)set_option(curl, handle, option, value); };
  // Resets the method of the previous request to GET.
  set(CURLOPT_CUSTOMREQUEST, static_cast<const char*>(nullptr));
  set(CURLOPT_HTTPGET, 1L);
  set(CURLOPT_FORBID_REUSE, 0L);  // set by a timeout of the previous request
  set(CURLOPT_URL, course.request.url.c_str());
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&course));
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&course));
  switch (course.request.method) {
    case HttpRequest::Method::Get: return;
    case HttpRequest::Method::Head: set(CURLOPT_NOBODY, 1L); return;
    case HttpRequest::Method::Delete: set(CURLOPT_CUSTOMREQUEST, "DELETE"); return;
    case HttpRequest::Method::Put: {
      curl_off_t size = 0;
      for (const std::string_view part : course.request.parts) size += static_cast<curl_off_t>(part.size());
      set(CURLOPT_UPLOAD, 1L);
      set(CURLOPT_INFILESIZE_LARGE, size);
      set(CURLOPT_READFUNCTION, &on_send);
      set(CURLOPT_READDATA, static_cast<void*>(&course));
      set(CURLOPT_SEEKFUNCTION, &on_seek);
      set(CURLOPT_SEEKDATA, static_cast<void*>(&course));
      return;
    }
  }
}

/// What a handle refers to during one request. The destructor removes it: the handle is kept, and may write to the
/// error buffer when it is closed.
class RequestScope {
 public:
  RequestScope(const CurlLibrary& curl, CURL* handle) : curl_(curl), handle_(handle) {
    (void)curl_.easy_setopt(handle_, CURLOPT_ERRORBUFFER, &details_[0]);
  }
  ~RequestScope() {
    (void)curl_.easy_setopt(handle_, CURLOPT_ERRORBUFFER, static_cast<char*>(nullptr));
    (void)curl_.easy_setopt(handle_, CURLOPT_HTTPHEADER, static_cast<curl_slist*>(nullptr));
    curl_.slist_free_all(headers_);
    if (is_signed_) (void)set_signing(curl_, handle_, nullptr);
  }
  RequestScope(const RequestScope&) = delete;
  RequestScope& operator=(const RequestScope&) = delete;

  Status sign(const AwsSigningKey& key) {
    is_signed_ = true;
    return set_signing(curl_, handle_, &key);
  }
  void add_header(const std::string& line) {
    curl_slist* const headers = curl_.slist_append(headers_, line.c_str());
    if (headers == nullptr) throw std::bad_alloc();
    headers_ = headers;
    (void)curl_.easy_setopt(handle_, CURLOPT_HTTPHEADER, headers_);
  }
  /// Returns the message of libcurl about the request; empty if there is none.
  const char* details() const { return &details_[0]; }

 private:
  const CurlLibrary& curl_;
  CURL* const handle_;
  curl_slist* headers_ = nullptr;
  bool is_signed_ = false;
  char details_[CURL_ERROR_SIZE] = "";
};

}  // namespace

std::string HttpRequest::name() const {
  constexpr const char* kMethods[] = {"GET ", "HEAD ", "PUT ", "DELETE "};
  return kMethods[static_cast<std::size_t>(method)] + url;
}

void configure_handle(const CurlLibrary& curl, CURL* handle, const HttpOptions& options) {
  const auto set = [&](CURLoption option, auto value) { (void)set_option(curl, handle, option, value); };
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  // No proxy from the environment, because the kiln configuration does not name it: docs/how-to/http-store.md.
  set(CURLOPT_PROXY, "");
  set(CURLOPT_HTTP09_ALLOWED, 0L);
  set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_2TLS});
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_SOCKOPTFUNCTION, &on_socket);
  // The buffer keeps its default of 16 KiB: one of 128 KiB is returned to the system each time (measured: 50 µs per
  // object).
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_USERAGENT, (std::string("kiln/") + version()).c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
  set(CURLOPT_PROTOCOLS_STR, "http,https");
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
  // Otherwise libcurl waits for the resolver thread beyond the timeout, as long as a dead name server takes.
  set(CURLOPT_QUICK_EXIT, 1L);
#endif
  if (!options.ca_file.empty()) {
    set(CURLOPT_CAINFO, options.ca_file.c_str());
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  }
  if (!options.client_cert.empty()) {
    set(CURLOPT_SSLCERT, options.client_cert.c_str());
    set(CURLOPT_SSLKEY, options.client_key.c_str());
  }
}

Result<HttpResponse> perform_request(const CurlLibrary& curl, SharedMulti& multi, CURL* handle,
                                     const std::string& token, const HttpRequest& request, const Deadline& deadline) {
  // libcurl counts in milliseconds and takes 0 as no timeout.
  const auto timeout = std::min<std::chrono::nanoseconds>(deadline.remaining(), kMaxTime);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  if (milliseconds <= 0) {
    return make_error(Code::TimedOut, request.name() + ": no time left for the request");
  }
  TransferState course{.curl = curl, .handle = handle, .request = request};
  RequestScope scope(curl, handle);
  set_request(curl, handle, course);
  if (request.signing != nullptr) {
    if (Status set = scope.sign(*request.signing); !set) return set.error();
  }
  (void)curl.easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(milliseconds));
  // No `Expect: 100-continue`: servers that do not support it cost a second. libcurl 7.88 signs a line that removes a
  // header, so a signed request keeps it and does not wait.
  if (request.method == HttpRequest::Method::Put && request.signing == nullptr) scope.add_header("Expect:");
  if (!token.empty()) scope.add_header("Authorization: Bearer " + token);
  for (const std::string& line : request.headers) scope.add_header(line);

  CURLcode code = CURLE_OK;
  {
    // Over plain HTTP libcurl itself writes and suppresses the signal.
    std::optional<ScopedSigpipeBlock> quiet;
    if (request.url.starts_with("https:")) quiet.emplace();
    code = multi.perform(handle, deadline);
  }
  if (course.no_memory) throw std::bad_alloc();
  if (course.too_long) {
    return make_error(Code::Corrupt, request.name() + ": the response is longer than the " +
                                         std::to_string(request.max_body_bytes) + " bytes allowed");
  }
  if (code == CURLE_OPERATION_TIMEDOUT && scope.details()[0] == '\0') {
    return make_error(Code::TimedOut,
                      request.name() + ": no complete response within " + std::to_string(milliseconds) + " ms");
  }
  if (code != CURLE_OK && !course.enough) return broken(curl, request, code, scope.details());
  return HttpResponse{course.status, std::move(course.body)};
}

}  // namespace kiln
