// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/files/files.hpp"
#include "remote/redis/dns_lookup.hpp"
#include "remote/redis/redis_url.hpp"

namespace kiln {

/// A response of the server. Never an array, because no command of kiln returns one.
struct RedisReply {
  enum class Kind : unsigned char { Text, Number, Nothing, Error };
  Kind kind = Kind::Nothing;
  long long number = 0;
  std::string text;
};

/// A connection to one server, opened by the first request and reopened after a failure. hiredis encodes and parses the
/// protocol. kiln owns the socket because the timeout covers a request as a whole, a closed connection must not raise a
/// signal, and child processes must not inherit it. Not thread-safe.
class RedisConnection {
 public:
  struct Endpoint {
    RedisUrl url;
    std::string password_file;
  };
  explicit RedisConnection(const Endpoint& endpoint);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  /// Sends one command with its arguments. Errors are those of `LeaseTable`.
  Result<RedisReply> ask(const std::vector<std::string_view>& command, const Deadline& deadline);

 private:
  struct Protocol;

  bool stale() const;
  void close();
  Status open(const Deadline& deadline);
  Status connect(const DnsLookup::Address& address, const Deadline& deadline);
  Status authenticate(const Deadline& deadline);
  Result<RedisReply> exchange(const std::vector<std::string_view>& command, const Deadline& deadline);
  Status send_all(std::string_view bytes, const Deadline& deadline);
  Result<RedisReply> receive(const Deadline& deadline);

  const Endpoint endpoint_;
  DnsLookup names_;
  Fd socket_;
  std::unique_ptr<Protocol> protocol_;
};

}  // namespace kiln
