#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "redis/name_lookup.hpp"
#include "redis/redis_url.hpp"

namespace kiln {

/// What a server said; never an array, which nothing that we ask is answered by.
struct RedisReply {
  enum class Kind : unsigned char { Text, Number, Nothing, Complaint };
  Kind kind = Kind::Nothing;
  long long number = 0;
  std::string text;
};

/// A connection to one server, opened by the first question and again after it broke. hiredis writes and reads the
/// protocol; the socket is ours, because a limit of time holds for a question as a whole, no signal may come of a
/// server that hangs up, and children must not inherit it. Not thread-safe.
class RedisConnection {
 public:
  struct Place {
    RedisUrl url;
    std::string password_file;
  };
  explicit RedisConnection(const Place& place);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  /// One command with its arguments. Errors as a LeaseTable's.
  Result<RedisReply> ask(const std::vector<std::string_view>& command, const Deadline& deadline);

 private:
  struct Protocol;

  bool stale() const;
  void close();
  Status open(const Deadline& deadline);
  Status connect(const NameLookup::Address& address, const Deadline& deadline);
  Status introduce(const Deadline& deadline);
  Result<RedisReply> exchange(const std::vector<std::string_view>& command, const Deadline& deadline);
  Status send_all(std::string_view bytes, const Deadline& deadline);
  Result<RedisReply> receive(const Deadline& deadline);

  const Place place_;
  NameLookup names_;
  Fd socket_;
  std::unique_ptr<Protocol> protocol_;
};

}  // namespace kiln
