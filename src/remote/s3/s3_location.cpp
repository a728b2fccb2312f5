// SPDX-License-Identifier: Apache-2.0
#include "remote/s3/s3_location.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "remote/http/http_url.hpp"

namespace kiln {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr std::size_t kMaxPrefix = 512;
constexpr std::size_t kMaxRegion = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return (c >= 'a' && c <= 'z') || is_digit(c); }
bool is_unreserved(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '~' || c == '-';
}

bool is_bucket(std::string_view name) {
  const auto valid = [](char c) { return is_lower(c) || c == '-' || c == '.'; };
  return name.size() >= 3 && name.size() <= 63 && std::all_of(name.begin(), name.end(), valid) &&
         is_lower(name.front()) && is_lower(name.back()) && name.find("..") == std::string_view::npos;
}

bool is_segment(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && std::all_of(text.begin(), text.end(), is_unreserved);
}

}  // namespace

Result<S3Name> parse_s3_url(std::string_view url) {
  const std::string_view whole = url;
  const Error invalid =
      make_error(Code::InvalidArgument,
                 "invalid remote store URL: expected s3://bucket/prefix with letters, digits and .-_~ in the prefix");
  if (!url.starts_with(kScheme)) return invalid;
  if (url.find('@') != std::string_view::npos) {
    return make_error(Code::InvalidArgument,
                      "the remote store URL contains a user or password, which would appear in logs; use "
                      "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile");
  }
  url.remove_prefix(kScheme.size());
  while (url.ends_with('/')) url.remove_suffix(1);
  const std::size_t slash = url.find('/');
  S3Name name{std::string(url.substr(0, slash)), {}};
  if (!is_bucket(name.bucket) || whole.size() > kMaxPrefix) return invalid;
  if (slash == std::string_view::npos) return name;
  const std::string_view prefix = url.substr(slash + 1);
  const auto segments = split(prefix, '/');
  if (!std::all_of(segments.begin(), segments.end(), is_segment)) return invalid;
  name.prefix = std::string(prefix) + "/";
  return name;
}

Result<std::string> bucket_url(const std::string& bucket, const std::string& region, std::string endpoint,
                               std::optional<bool> path_style) {
  const auto valid = [](char c) { return is_lower(c) || c == '-'; };
  if (region.empty() || region.size() > kMaxRegion || !std::all_of(region.begin(), region.end(), valid)) {
    return make_error(Code::InvalidArgument, "invalid AWS region; set AWS_REGION to a name like us-east-1");
  }
  const bool in_path = path_style.value_or(!endpoint.empty() || bucket.find('.') != std::string::npos);
  if (endpoint.empty()) {
    endpoint = "https://s3." + region + (region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com");
  }
  const Result<HttpOptions> checked = validate_http_options({endpoint, {}, {}, {}, {}});
  if (!checked) {
    return make_error(Code::InvalidArgument,
                      "invalid S3 endpoint: expected a URL like https://s3.example without user, password or query; "
                      "set AWS_ENDPOINT_URL_S3");
  }
  if (in_path) return checked->url + "/" + bucket;
  const std::size_t host = checked->url.find("://") + 3;
  return checked->url.substr(0, host) + bucket + "." + checked->url.substr(host);
}

std::string encode_query_value(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

}  // namespace kiln
