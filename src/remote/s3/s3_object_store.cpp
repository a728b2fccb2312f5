// SPDX-License-Identifier: Apache-2.0
#include "remote/s3/s3_object_store.hpp"

#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/process/per_process.hpp"
#include "remote/http/http_client.hpp"
#include "remote/http/http_url.hpp"
#include "remote/s3/aws_settings.hpp"
#include "remote/s3/metadata_credentials.hpp"
#include "remote/s3/s3_error.hpp"
#include "remote/s3/s3_listing.hpp"

namespace kiln {
namespace {

using Method = HttpRequest::Method;

// A page has at most 1,000 keys of at most 1 KiB.
constexpr std::uint64_t kMaxPage = 4 << 20;
constexpr std::size_t kMaxListed = 10'000'000;

/// Where requests go and with which keys. Immutable.
struct S3Access {
  AwsSettings settings;
  std::string url;                                // of the bucket
  std::shared_ptr<MetadataCredentials> metadata;  // the source of keys if the settings contain none
};

/// A client of one bucket: the connections and the settings of the AWS tools, which the first request reads. An
/// instance belongs to the process that created it (PerProcess). Thread-safe.
class S3Client {
 public:
  S3Client(const S3Options& options, const std::string& bucket)
      : options_(options), bucket_(bucket),
        http_({options.url, {}, options.ca_file, options.client_cert, options.client_key}) {}

  /// A request for `<url of the bucket>/<path>`.
  struct Request {
    Method method = Method::Get;
    std::string path;  ///< may contain a query
    std::span<const std::string_view> parts = {};
    std::uint64_t max_body_bytes = 0;
  };
  struct Response {
    std::string body;                  ///< of a successful Get
    std::optional<S3Failure> failure;  ///< if the status is not that of success
  };
  /// Signs and sends a request. If the server rejects the keys, gets them again and repeats it once.
  Result<Response> send(const Request& request, const Deadline& deadline) {
    auto access = this->access(nullptr);
    if (!access) return access.error();
    const auto keys = keys_of(**access, deadline);
    if (!keys) return keys.error();
    Result<Response> answer = send_with(**access, *keys, request, deadline);
    if (!answer || !answer->failure || !answer->failure->rejects_credentials()) return answer;
    if ((*access)->metadata != nullptr) {
      (*access)->metadata->drop(*keys);
    } else {
      access = this->access(access->get());
    }
    if (!access) return answer;
    const auto renewed = keys_of(**access, deadline);
    if (!renewed || *renewed == *keys) return answer;
    return send_with(**access, *renewed, request, deadline);
  }
  /// Returns the error of a failed request.
  Error error(const Request& request, const S3Failure& failure) {
    const auto access = this->access(nullptr);
    if (!access) return access.error();
    const HttpRequest named{request.method, (*access)->url + "/" + request.path, {}, 0};
    return s3_error(named.name(), failure, (*access)->settings.region);
  }

 private:
  static Result<AwsCredentials> keys_of(const S3Access& access, const Deadline& deadline) {
    if (access.settings.credentials) return *access.settings.credentials;
    return access.metadata->get(deadline);
  }

  Result<Response> send_with(const S3Access& access, const AwsCredentials& keys, const Request& request,
                             const Deadline& deadline) {
    const AwsSigningKey signing{access.settings.region, keys.access_key, keys.secret_key};
    HttpRequest sent{request.method, access.url + "/" + request.path, request.parts, request.max_body_bytes};
    sent.signing = &signing;
    sent.max_other_bytes = kMaxS3Error;
    Sha256 hash;
    for (const std::string_view part : request.parts) hash.add(as_bytes(part));
    // libcurl takes the digest of the body from here.
    sent.headers.push_back("x-amz-content-sha256: " + hash.finish().hex());
    if (!keys.session_token.empty()) sent.headers.push_back("x-amz-security-token: " + keys.session_token);
    Result<HttpResponse> answer = http_.send(sent, deadline);
    if (!answer) return answer.error();
    if (answer->status >= 200 && answer->status < 300) return Response{std::move(answer->body), std::nullopt};
    return Response{{}, parse_s3_failure(answer->status, answer->body)};
  }

  /// Returns the current access. Reads the settings if there is none or it is `stale`.
  Result<std::shared_ptr<const S3Access>> access(const S3Access* stale) {
    const MutexLock lock(mutex_);
    if (access_ != nullptr && access_.get() != stale) return access_;
    auto read = read_access();
    if (!read) return read.error();
    access_ = *std::move(read);
    return access_;
  }
  Result<std::shared_ptr<const S3Access>> read_access() const {
    Result<AwsSettings> settings = read_aws_settings();
    if (!settings) return settings.error();
    Result<std::string> url = bucket_url(bucket_, settings->region, settings->endpoint, options_.path_style);
    if (!url) return url.error();
    S3Access access{*std::move(settings), *std::move(url), nullptr};
    if (!access.settings.credentials) {
      Result<std::optional<MetadataService>> service = find_metadata_service();
      if (!service) return service.error();
      if (!*service) return no_credentials(access.settings);
      access.metadata = std::make_shared<MetadataCredentials>(**std::move(service), system_clock());
    }
    return std::shared_ptr<const S3Access>(std::make_shared<const S3Access>(std::move(access)));
  }
  Error no_credentials(const AwsSettings& settings) const {
    const std::string other =
        settings.unsupported.empty() ? std::string() : " (" + settings.unsupported + " is not supported)";
    return make_error(Code::Denied, options_.url + ": no AWS credentials" + other +
                                        "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write a profile to "
                                        "~/.aws/credentials");
  }

  const S3Options options_;
  const std::string bucket_;
  HttpClient http_;
  Mutex mutex_;
  std::shared_ptr<const S3Access> access_ KILN_GUARDED_BY(mutex_);
};

/// An object store in a bucket of S3. Thread-safe.
class S3ObjectStore final : public ObjectStore {
 public:
  S3ObjectStore(S3Options options, S3Name name) : options_(std::move(options)), name_(std::move(name)) {}

  Result<std::optional<Bytes>> read(Bucket bucket, const Digest& name, std::uint64_t maximum,
                                    const Deadline& deadline) override {
    const S3Client::Request request{Method::Get, key(bucket, name), {}, maximum};
    Result<S3Client::Response> answer = client().send(request, deadline);
    if (!answer) return answer.error();
    if (!answer->failure) return std::optional<Bytes>(Bytes::of(std::move(answer->body)));
    if (answer->failure->is_absent()) return std::optional<Bytes>();
    return client().error(request, *answer->failure);
  }

  Status write(Bucket bucket, const Digest& name, std::initializer_list<std::string_view> parts,
               const Deadline& deadline) override {
    return expect_success({Method::Put, key(bucket, name), std::span(parts.begin(), parts.size()), 0}, deadline);
  }

  Status remove(Bucket bucket, const Digest& name, const Deadline& deadline) override {
    return expect_success({Method::Delete, key(bucket, name), {}, 0}, deadline, true);
  }

  Result<std::vector<ObjectInfo>> list(Bucket bucket, const Deadline& deadline) override {
    std::vector<ObjectInfo> all;
    std::string after;
    for (;;) {
      Result<S3ListPage> page = list_page(bucket, after, 1000, deadline);
      if (!page) return page.error();
      all.insert(all.end(), page->objects.begin(), page->objects.end());
      if (!page->is_truncated) return all;
      if (page->last_key <= after || all.size() > kMaxListed) {
        return make_error(Code::Corrupt, describe() + ": the listing does not end");
      }
      after = std::move(page->last_key);
    }
  }

  Status probe(const Deadline& deadline) override {
    // Requests an object that no bucket has. Not with HEAD, whose response does not name the cause of an error.
    return expect_success({Method::Get, key(Bucket::Cas, Digest()), {}, kMaxS3Error}, deadline, true);
  }

  Result<bool> has_bucket(Bucket bucket, const Deadline& deadline) override {
    const Result<S3ListPage> page = list_page(bucket, {}, 1, deadline);
    if (!page) return page.error();
    return !page->last_key.empty();
  }

  std::string describe() const override { return options_.url; }

 private:
  std::string directory(Bucket bucket) const { return name_.prefix + to_string(bucket) + "/"; }
  std::string key(Bucket bucket, const Digest& name) const { return directory(bucket) + name.hex(); }
  S3Client& client() { return client_.get(options_, name_.bucket); }

  Result<S3ListPage> list_page(Bucket bucket, const std::string& after, int max_keys, const Deadline& deadline) {
    const std::string prefix = directory(bucket);
    // libcurl signs the parameters as they are, so they are encoded and sorted here. `start-after` instead of the
    // continuation token, which is any text of the server's.
    std::string query = "?list-type=2&max-keys=" + std::to_string(max_keys) + "&prefix=" + encode_query_value(prefix);
    if (!after.empty()) query += "&start-after=" + encode_query_value(after);
    const S3Client::Request request{Method::Get, std::move(query), {}, kMaxPage};
    const Result<S3Client::Response> answer = client().send(request, deadline);
    if (!answer) return answer.error();
    if (answer->failure) return client().error(request, *answer->failure);
    auto page = parse_s3_listing(answer->body, prefix);
    if (!page) return make_error(Code::Corrupt, describe() + ": the response is not a listing of S3");
    return *std::move(page);
  }

  /// Sends a request that returns no body. With `absent_too`, a missing object counts as success.
  Status expect_success(const S3Client::Request& request, const Deadline& deadline, bool absent_too = false) {
    const Result<S3Client::Response> answer = client().send(request, deadline);
    if (!answer) return answer.error();
    if (!answer->failure || (absent_too && answer->failure->is_absent())) return {};
    return client().error(request, *answer->failure);
  }

  const S3Options options_;
  const S3Name name_;
  PerProcess<S3Client> client_;
};

}  // namespace

Result<std::unique_ptr<ObjectStore>> open_s3_object_store(const S3Options& options) {
  Result<S3Name> name = parse_s3_url(options.url);
  if (!name) return name.error();
  S3Options tidy = options;
  while (tidy.url.ends_with('/')) tidy.url.pop_back();
  if (tidy.client_cert.empty() != tidy.client_key.empty()) {
    return make_error(
        Code::InvalidArgument,
        "a client certificate requires its key; set both remote.client_cert and remote.client_key, or neither");
  }
  return std::unique_ptr<ObjectStore>(std::make_unique<S3ObjectStore>(std::move(tidy), *std::move(name)));
}

}  // namespace kiln
