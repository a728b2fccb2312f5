#include "redis/redis_url.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.hpp"

namespace kiln {
namespace {

// What surrounds a password may be typed wrongly, so that no part of an address that is refused is repeated.
Error no_url(const std::string& why) {
  return failure(Code::InvalidArgument,
                 "the address of the leases " + why + "; it is redis://[user@]host[:port][/database]");
}

template <class Number>
bool read_number(std::string_view text, Number most, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value <= most;
}

bool plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || c == ':';
  });
}

Status split_host(std::string_view place, RedisUrl& url) {
  std::string_view port;
  bool has_port = false;
  if (place.starts_with('[')) {
    const std::size_t end = place.find(']');
    if (end == std::string_view::npos) return no_url("has a bracket without its other half");
    url.host = place.substr(1, end - 1);
    port = place.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) return no_url("has something behind its host that is no port");
    has_port = !port.empty();
    if (has_port) port.remove_prefix(1);
  } else {
    const std::size_t colon = place.find(':');
    has_port = colon != std::string_view::npos;
    url.host = place.substr(0, colon);
    if (has_port) port = place.substr(colon + 1);
  }
  if (url.host.empty() || !plain(url.host)) return no_url("names no host");
  if (has_port &&
      (!read_number<std::uint16_t>(port, std::numeric_limits<std::uint16_t>::max(), url.port) || url.port == 0))
    return no_url("has a port that is no number from 1 to 65535");
  return {};
}

}  // namespace

Result<RedisUrl> RedisUrl::parse(std::string_view text) {
  constexpr std::string_view kPlain = "redis://";
  if (text.starts_with("rediss://")) {
    return failure(Code::Unsupported,
                   "leases over TLS (rediss://) need a sidecar, since the hiredis that kiln was built with has no TLS: "
                   "let stunnel or envoy listen on the loopback, as docs/leases.md shows, and name redis://127.0.0.1");
  }
  if (!text.starts_with(kPlain)) return no_url("does not begin with redis://");
  text.remove_prefix(kPlain.size());
  RedisUrl url;
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    const std::string_view user = text.substr(0, at);
    if (user.find(':') != std::string_view::npos)
      return no_url(
          "has a password in it, where logs would show it: put it into the file that lease.password_file names");
    if (user.empty() || !plain(user))
      return no_url("has a user of other characters than letters, digits, '-', '_', '.'");
    url.user = user;
    text.remove_prefix(at + 1);
  }
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const std::string_view database = text.substr(slash + 1);
    if (!database.empty() && !read_number(database, 1'000'000U, url.database))
      return no_url("has a database that is no number");
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
