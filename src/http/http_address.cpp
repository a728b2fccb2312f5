#include "http/http_address.hpp"

#include <algorithm>
#include <string_view>

#include "base/error.hpp"

namespace kiln {
namespace {

constexpr std::size_t kMostUrl = 2048;

/// `cache.example:8080` of `https://cache.example:8080/kiln`; empty where there is none.
std::string_view authority_of(std::string_view url) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (!url.starts_with(scheme)) continue;
    url.remove_prefix(scheme.size());
    return url.substr(0, url.find('/'));
  }
  return {};
}

bool is_this_machine(std::string_view authority) {
  const std::string_view host = authority.starts_with("[") ? authority.substr(0, authority.find(']') + 1)
                                                           : authority.substr(0, authority.find(':'));
  // A name may begin with 127 too.
  const bool numbers = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "[::1]" || (numbers && host.starts_with("127."));
}

bool is_plain(char c) { return c > ' ' && c <= '~' && c != '\\' && c != '"' && c != '<' && c != '>'; }

}  // namespace

Result<HttpOptions> checked(HttpOptions options) {
  std::string& url = options.url;
  if (url.find('@') != std::string::npos) {
    return failure(
        Code::InvalidArgument,
        "the URL of the remote store has a user or a password in it, which would end up in logs: use a token "
        "file (remote.token_file) or a client certificate (remote.client_cert)");
  }
  if (url.find_first_of("?#") != std::string::npos) {
    return failure(
        Code::InvalidArgument,
        "the URL of the remote store has a query or a fragment in it; names of entries are put behind the URL, "
        "so it must end with a path");
  }
  if (url.size() > kMostUrl || !std::all_of(url.begin(), url.end(), is_plain) || authority_of(url).empty()) {
    return failure(Code::InvalidArgument,
                   "the URL of the remote store is none: it should look like https://cache.example/kiln");
  }
  while (url.ends_with('/')) url.pop_back();
  if (options.client_cert.empty() != options.client_key.empty()) {
    return failure(Code::InvalidArgument,
                   "a client certificate needs its key: set both remote.client_cert and remote.client_key, or none");
  }
  if (!options.token_file.empty() && url.starts_with("http://") && !is_this_machine(authority_of(url))) {
    return failure(Code::InvalidArgument,
                   "a token would be sent to " + url +
                       " unencrypted, for everybody on the way to read; use https:// (or a proxy on this machine)");
  }
  return options;
}

}  // namespace kiln
