// SPDX-License-Identifier: Apache-2.0
#include "remote/http/http_url.hpp"

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "remote/secret_file.hpp"

namespace kiln {
namespace {

constexpr std::size_t kMaxUrlLength = 2048;

/// Returns `cache.example:8080` for `https://cache.example:8080/kiln`, or an empty string for other URLs.
std::string_view authority_of(std::string_view url) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (!url.starts_with(scheme)) continue;
    url.remove_prefix(scheme.size());
    return url.substr(0, url.find('/'));
  }
  return {};
}

std::string_view host_of(std::string_view authority) {
  if (!authority.starts_with('[')) return authority.substr(0, authority.find(':'));
  authority.remove_prefix(1);
  return authority.substr(0, authority.find(']'));
}

bool is_plain(char c) { return c > ' ' && c <= '~' && c != '\\' && c != '"' && c != '<' && c != '>'; }

}  // namespace

Result<HttpOptions> validate_http_options(HttpOptions options) {
  std::string& url = options.url;
  if (url.find('@') != std::string::npos) {
    return make_error(Code::InvalidArgument,
                      "the remote store URL contains a user or password, which would appear in logs; use a token "
                      "file (remote.token_file) or a client certificate (remote.client_cert)");
  }
  if (url.find_first_of("?#") != std::string::npos) {
    return make_error(
        Code::InvalidArgument,
        "the remote store URL contains a query or fragment; it must end with a path, because kiln appends "
        "object names to it");
  }
  if (url.size() > kMaxUrlLength || !std::all_of(url.begin(), url.end(), is_plain) || authority_of(url).empty()) {
    return make_error(Code::InvalidArgument,
                      "invalid remote store URL: expected a URL like https://cache.example/kiln");
  }
  while (url.ends_with('/')) url.pop_back();
  if (options.client_cert.empty() != options.client_key.empty()) {
    return make_error(
        Code::InvalidArgument,
        "a client certificate requires its key; set both remote.client_cert and remote.client_key, or neither");
  }
  if (!options.token_file.empty() && url.starts_with("http://") && !is_this_machine(host_of(authority_of(url)))) {
    return make_error(Code::InvalidArgument,
                      "the token would be sent unencrypted to " + url + "; use https:// or a proxy on this machine");
  }
  return options;
}

}  // namespace kiln
