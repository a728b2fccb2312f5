#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

namespace kiln {

/// `redis://[user@]host[:port][/database]`, taken apart.
struct RedisUrl {
  std::string user;  ///< empty: the default one
  std::string host;  ///< without the brackets of an IPv6 address
  std::uint16_t port = 6379;
  unsigned database = 0;

  /// Code::InvalidArgument for what is none, or has a password in it, which no message repeats; Code::Unsupported for
  /// `rediss://`.
  static Result<RedisUrl> parse(std::string_view text);
  /// For people: `redis://leases.example:6379/2`.
  std::string describe() const;
};

}  // namespace kiln
