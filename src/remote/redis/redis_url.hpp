// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

namespace kiln {

/// The parts of `redis://[user@]host[:port][/database]`.
struct RedisUrl {
  std::string user;  ///< empty means the default user
  std::string host;  ///< without the brackets of an IPv6 address
  std::uint16_t port = 6379;
  unsigned database = 0;

  /// Parses a URL. Returns Code::InvalidArgument for an invalid URL and for one with a password, which no message
  /// repeats, and Code::Unsupported for `rediss://`.
  static Result<RedisUrl> parse(std::string_view text);
  /// Returns a human-readable form: `redis://leases.example:6379/2`.
  std::string describe() const;
};

}  // namespace kiln
