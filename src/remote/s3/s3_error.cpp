// SPDX-License-Identifier: Apache-2.0
#include "remote/s3/s3_error.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "remote/s3/xml_reader.hpp"

namespace kiln {
namespace {

constexpr std::size_t kMaxWord = 64;

bool is_word(std::string_view text) {
  const auto valid = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return text.size() <= kMaxWord && std::all_of(text.begin(), text.end(), valid);
}

class FailureHandler final : public XmlHandler {
 public:
  explicit FailureHandler(S3Failure& out) : out_(out) {}
  bool open(std::string_view name, std::size_t depth) override { return depth > 0 || name == "Error"; }
  bool close(std::string_view name, std::size_t depth, std::string_view text) override {
    if (depth != 1 || !is_word(text)) return true;
    if (name == "Code") out_.code = text;
    if (name == "Region") out_.region = text;
    return true;
  }

 private:
  S3Failure& out_;
};

struct Cause {
  std::string_view code;
  const char* text;
};

// Answers that a request with other keys, another clock or another name can change.
constexpr Cause kDenied[] = {
    {"InvalidAccessKeyId", "the server does not know the access key; check AWS_ACCESS_KEY_ID or the profile"},
    {"SignatureDoesNotMatch",
     "the secret key is not that of the access key; check AWS_SECRET_ACCESS_KEY or the profile"},
    {"ExpiredToken", "the session token has expired; renew the credentials"},
    {"InvalidToken", "the session token is invalid; renew the credentials"},
    {"RequestTimeTooSkewed", "the clock of this host differs from that of the server; synchronize it"},
    {"RequestExpired", "the clock of this host differs from that of the server; synchronize it"},
    {"AccessDenied",
     "the key has no access; allow s3:GetObject and s3:ListBucket, for a publisher s3:PutObject, for 'kiln remote gc' "
     "s3:DeleteObject"},
    {"NoSuchBucket", "the bucket does not exist; check remote.url (KILN_REMOTE) and the endpoint"},
};

bool is_one_of(std::string_view code, std::initializer_list<std::string_view> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

}  // namespace

bool S3Failure::rejects_credentials() const {
  return is_one_of(code, {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"});
}

S3Failure parse_s3_failure(long status, std::string_view body) {
  S3Failure failure{status, {}, {}};
  FailureHandler handler(failure);
  if (!parse_xml(body, handler)) return {status, {}, {}};
  return failure;
}

Error s3_error(const std::string& request, const S3Failure& failure, const std::string& region) {
  const long status = failure.status;
  const std::string& code = failure.code;
  const std::string said =
      request + ": HTTP status " + std::to_string(status) + (code.empty() ? "" : " (" + code + ")") + ": ";
  if (is_one_of(code, {"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout"}) || status == 429 ||
      (status >= 500 && status != 501)) {
    return make_error(Code::Unavailable, said + "the server is overloaded or failing");
  }
  if (is_one_of(code, {"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed"}) ||
      (status >= 300 && status < 400)) {
    const bool is_named = !failure.region.empty() && failure.region != region;
    return make_error(Code::Denied, said + "the bucket is not in region '" + region + "'; set AWS_REGION to " +
                                        (is_named ? "'" + failure.region + "'" : "the region of the bucket"));
  }
  for (const Cause& cause : kDenied) {
    if (code == cause.code) return make_error(Code::Denied, said + cause.text);
  }
  if (status == 405 || status == 501 || code == "NotImplemented") {
    return make_error(Code::Unsupported, said + "the server does not support this request");
  }
  if (status >= 400) return make_error(Code::Denied, said + "the server rejected the request");
  return make_error(Code::Corrupt, said + "unexpected status");
}

}  // namespace kiln
