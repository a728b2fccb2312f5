#include "http/http_depot.hpp"

#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/per_process.hpp"
#include "http/http_address.hpp"
#include "http/http_client.hpp"
#include "http/http_listing.hpp"

namespace kiln {
namespace {

// About 400,000 files.
constexpr std::uint64_t kMostListing = 64 << 20;

using Method = HttpRequest::Method;

std::string with_status(const HttpRequest& request, long status) {
  return request.name() + ": the server answered " + std::to_string(status);
}

/// What a status says that is not the one that was hoped for.
Error unwelcome(const HttpRequest& request, long status) {
  const std::string said = with_status(request, status);
  if (status == 401) return failure(Code::Refused, said + ": it does not know our token, or wants one");
  if (status == 403) return failure(Code::Refused, said + ": we may not do that");
  if (status == 405) return failure(Code::Unsupported, said + ": it does not take such requests");
  if (status == 429 || status >= 500) return failure(Code::Unavailable, said + ": it is in trouble");
  if (status == 400) {
    return failure(Code::Refused, said +
                                      ", as nginx does to whom shows no client certificate, and others to a body "
                                      "that they do not take");
  }
  if (status > 400) return failure(Code::Refused, said);
  return failure(Code::Corrupt, said + ", which means nothing here; redirects are not followed");
}

class HttpDepot final : public Depot {
 public:
  explicit HttpDepot(HttpOptions options) : options_(std::move(options)) {}

  Result<std::optional<Bytes>> read(Shelf shelf, const Digest& name, std::uint64_t most, Time limit) override {
    const HttpRequest request{Method::Get, place(shelf, name), {}, most};
    Result<HttpAnswer> answer = send(request, limit);
    if (!answer) return answer.error();
    if (answer->status == 200) return std::optional<Bytes>(Bytes::of(std::move(answer->body)));
    if (is_absent(answer->status)) return std::optional<Bytes>();
    return unwelcome(request, answer->status);
  }

  Status write(Shelf shelf, const Digest& name, std::initializer_list<std::string_view> parts, Time limit) override {
    return done({Method::Put, place(shelf, name), std::span(parts.begin(), parts.size()), 0}, limit);
  }

  Status remove(Shelf shelf, const Digest& name, Time limit) override {
    return done({Method::Delete, place(shelf, name), {}, 0}, limit, true);
  }

  Result<std::vector<Listed>> list(Shelf shelf, Time limit) override {
    const HttpRequest request{Method::Get, options_.url + "/" + to_string(shelf) + "/", {}, kMostListing};
    const Result<HttpAnswer> answer = send(request, limit);
    if (!answer) return answer.error();
    const long status = answer->status;
    // A server that lists nothing says that there is no such thing, or that we may not: nginx says 403.
    const bool in_trouble = status == 401 || status == 429 || status >= 500;
    if (in_trouble && status != 501) return unwelcome(request, status);
    auto listed = status == 200 ? parse_listing(answer->body) : std::nullopt;
    if (listed) return *std::move(listed);
    return failure(Code::Unsupported, with_status(request, status) +
                                          ", which is no list of its files; nginx makes one with `autoindex on; "
                                          "autoindex_format json;`");
  }

  Status probe(Time limit) override {
    // Of a body that no server has: an answer of a few bytes.
    return done({Method::Head, place(Shelf::Content, Digest()), {}, 0}, limit, true);
  }

  std::string describe() const override { return options_.url; }

 private:
  static bool is_absent(long status) { return status == 404 || status == 410; }

  std::string place(Shelf shelf, const Digest& name) const {
    return options_.url + "/" + to_string(shelf) + "/" + name.hex();
  }

  /// Where `absent_too`, that there is no such thing is as good.
  Status done(const HttpRequest& request, Time limit, bool absent_too = false) {
    const Result<HttpAnswer> answer = send(request, limit);
    if (!answer) return answer.error();
    const long status = answer->status;
    if ((status >= 200 && status < 300) || (absent_too && is_absent(status))) return {};
    return unwelcome(request, status);
  }

  Result<HttpAnswer> send(const HttpRequest& request, Time limit) { return client_.get(options_).send(request, limit); }

  const HttpOptions options_;
  PerProcess<HttpClient> client_;
};

}  // namespace

Result<std::unique_ptr<Depot>> open_http_depot(HttpOptions options) {
  Result<HttpOptions> tidy = checked(std::move(options));
  if (!tidy) return tidy.error();
  return std::unique_ptr<Depot>(std::make_unique<HttpDepot>(*std::move(tidy)));
}

}  // namespace kiln
