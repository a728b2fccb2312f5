// SPDX-License-Identifier: Apache-2.0
#include "remote/redis/redis_url.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.hpp"

namespace kiln {
namespace {

// The text around a password may have a typo, so the message repeats no part of a rejected URL.
Error no_url(const std::string& reason) {
  return make_error(Code::InvalidArgument,
                    "invalid lease URL: " + reason + "; expected redis://[user@]host[:port][/database]");
}

template <class Number>
bool read_number(std::string_view text, Number maximum, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value <= maximum;
}

bool plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || c == ':';
  });
}

Status split_host(std::string_view authority, RedisUrl& url) {
  std::string_view port;
  bool has_port = false;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return no_url("unclosed bracket");
    url.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) return no_url("unexpected text after the host");
    has_port = !port.empty();
    if (has_port) port.remove_prefix(1);
  } else {
    const std::size_t colon = authority.find(':');
    has_port = colon != std::string_view::npos;
    url.host = authority.substr(0, colon);
    if (has_port) port = authority.substr(colon + 1);
  }
  if (url.host.empty() || !plain(url.host)) return no_url("the host is missing or invalid");
  if (has_port &&
      (!read_number<std::uint16_t>(port, std::numeric_limits<std::uint16_t>::max(), url.port) || url.port == 0))
    return no_url("the port is not a number from 1 to 65535");
  return {};
}

}  // namespace

Result<RedisUrl> RedisUrl::parse(std::string_view text) {
  constexpr std::string_view kPlain = "redis://";
  if (text.starts_with("rediss://")) {
    return make_error(Code::Unsupported,
                      "leases over TLS (rediss://) are not supported: the hiredis of this build has no TLS; "
                      "run stunnel or envoy on the loopback (docs/how-to/share-a-cache.md) and use redis://127.0.0.1");
  }
  if (!text.starts_with(kPlain)) return no_url("the scheme is not redis://");
  text.remove_prefix(kPlain.size());
  RedisUrl url;
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    const std::string_view user = text.substr(0, at);
    if (user.find(':') != std::string_view::npos)
      return no_url(
          "it contains a password, which would appear in logs and belongs in the file of lease.password_file");
    if (user.empty() || !plain(user))
      return no_url("the user has characters other than letters, digits, '-', '_', '.'");
    url.user = user;
    text.remove_prefix(at + 1);
  }
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const std::string_view database = text.substr(slash + 1);
    if (!database.empty() && !read_number(database, 1'000'000U, url.database))
      return no_url("the database is not a number");
    text = text.substr(0, slash);
  }
  if (Status split = split_host(text, url); !split) return std::move(split).error();
  return url;
}

std::string RedisUrl::describe() const {
  const bool bracketed = host.find(':') != std::string::npos;
  return "redis://" + (bracketed ? "[" + host + "]" : host) + ":" + std::to_string(port) +
         (database != 0 ? "/" + std::to_string(database) : "");
}

}  // namespace kiln
