// SPDX-License-Identifier: Apache-2.0
#include "remote/http/http_object_store.hpp"

#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/process/per_process.hpp"
#include "remote/http/http_client.hpp"
#include "remote/http/http_listing.hpp"
#include "remote/http/http_url.hpp"

namespace kiln {
namespace {

// Enough for about 400,000 files.
constexpr std::uint64_t kMaxListing = 64 << 20;

using Method = HttpRequest::Method;

std::string with_status(const HttpRequest& request, long status) {
  return request.name() + ": HTTP status " + std::to_string(status);
}

/// Returns the error for an unsuccessful status.
Error status_error(const HttpRequest& request, long status) {
  const std::string said = with_status(request, status);
  if (status == 401) return make_error(Code::Denied, said + ": the token is missing or invalid");
  if (status == 403) return make_error(Code::Denied, said + ": access denied");
  if (status == 404) return make_error(Code::Denied, said + ": the server has no such path");
  if (status == 405 || status == 501)
    return make_error(Code::Unsupported, said + ": the server does not support this method");
  if (status == 429 || status >= 500)
    return make_error(Code::Unavailable, said + ": the server is overloaded or failing");
  if (status == 400) {
    return make_error(Code::Denied, said +
                                        ": the client certificate is missing (nginx), or the server "
                                        "rejected the object");
  }
  if (status > 400) return make_error(Code::Denied, said);
  return make_error(Code::Corrupt, said + ": unexpected status; redirects are not followed");
}

/// An object store in the directories of an HTTP server. Thread-safe.
class HttpObjectStore final : public ObjectStore {
 public:
  explicit HttpObjectStore(HttpOptions options) : options_(std::move(options)) {}

  Result<std::optional<Bytes>> read(Bucket bucket, const Digest& name, std::uint64_t maximum,
                                    const Deadline& deadline) override {
    const HttpRequest request{Method::Get, place(bucket, name), {}, maximum};
    Result<HttpResponse> answer = send(request, deadline);
    if (!answer) return answer.error();
    if (answer->status == 200) return std::optional<Bytes>(Bytes::of(std::move(answer->body)));
    if (is_absent(answer->status)) return std::optional<Bytes>();
    return status_error(request, answer->status);
  }

  Status write(Bucket bucket, const Digest& name, std::initializer_list<std::string_view> parts,
               const Deadline& deadline) override {
    return expect_success({Method::Put, place(bucket, name), std::span(parts.begin(), parts.size()), 0}, deadline);
  }

  Status remove(Bucket bucket, const Digest& name, const Deadline& deadline) override {
    return expect_success({Method::Delete, place(bucket, name), {}, 0}, deadline, true);
  }

  Result<std::vector<ObjectInfo>> list(Bucket bucket, const Deadline& deadline) override {
    const HttpRequest request{Method::Get, directory(bucket), {}, kMaxListing};
    const Result<HttpResponse> answer = send(request, deadline);
    if (!answer) return answer.error();
    const long status = answer->status;
    // A server without listings returns 404 or denies access: nginx returns 403.
    const bool has_problem = status == 401 || status == 429 || status >= 500;
    if (has_problem && status != 501) return status_error(request, status);
    auto listed = status == 200 ? parse_listing(answer->body) : std::nullopt;
    if (listed) return *std::move(listed);
    return make_error(Code::Unsupported, with_status(request, status) +
                                             ": the response is not a file list; for nginx, set `autoindex on; "
                                             "autoindex_format json;`");
  }

  Status probe(const Deadline& deadline) override {
    // Requests an object that no server has: the response is a few bytes.
    return expect_success({Method::Head, place(Bucket::Cas, Digest()), {}, 0}, deadline, true);
  }

  Result<bool> has_bucket(Bucket bucket, const Deadline& deadline) override {
    const HttpRequest request{Method::Head, directory(bucket), {}, 0};
    const Result<HttpResponse> answer = send(request, deadline);
    if (!answer) return answer.error();
    return !is_absent(answer->status);
  }

  std::string describe() const override { return options_.url; }

 private:
  static bool is_absent(long status) { return status == 404 || status == 410; }

  std::string directory(Bucket bucket) const { return options_.url + "/" + to_string(bucket) + "/"; }
  std::string place(Bucket bucket, const Digest& name) const { return directory(bucket) + name.hex(); }

  /// Sends a request that returns no body. With `absent_too`, a missing object counts as success.
  Status expect_success(const HttpRequest& request, const Deadline& deadline, bool absent_too = false) {
    const Result<HttpResponse> answer = send(request, deadline);
    if (!answer) return answer.error();
    const long status = answer->status;
    if ((status >= 200 && status < 300) || (absent_too && is_absent(status))) return {};
    return status_error(request, status);
  }

  Result<HttpResponse> send(const HttpRequest& request, const Deadline& deadline) {
    return client_.get(options_).send(request, deadline);
  }

  const HttpOptions options_;
  PerProcess<HttpClient> client_;
};

}  // namespace

Result<std::unique_ptr<ObjectStore>> open_http_object_store(HttpOptions options) {
  Result<HttpOptions> tidy = validate_http_options(std::move(options));
  if (!tidy) return tidy.error();
  return std::unique_ptr<ObjectStore>(std::make_unique<HttpObjectStore>(*std::move(tidy)));
}

}  // namespace kiln
