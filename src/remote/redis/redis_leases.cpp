// SPDX-License-Identifier: Apache-2.0
#include "remote/redis/redis_leases.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/process/per_process.hpp"
#include "remote/redis/redis_connection.hpp"
#include "remote/secret_file.hpp"

namespace kiln {
namespace {

using Time = LeaseTable::Time;
using Kind = RedisReply::Kind;

// Explained in docs/how-to/share-a-cache.md. A server runs a script atomically, so that only the owner of a lease can
// change it.
constexpr const char* kRenew =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0";
constexpr const char* kRelease =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0";
constexpr const char* kDraw =
    "local n=redis.call('incr',KEYS[1]) if n==1 then redis.call('pexpire',KEYS[1],ARGV[2]) end "
    "if n<=tonumber(ARGV[1]) then return 1 end return 0";

std::string lease_key(const RequestKey& request) { return "kiln:1:lease:" + request.hex(); }
std::string hedge_key(const RequestKey& request) { return "kiln:1:hedge:" + request.hex(); }

constexpr long long kYear = 365LL * 24 * 3600 * 1000;
// Results of PTTL that are not a time. All keys that kiln writes expire.
constexpr long long kNoKey = -2;
constexpr long long kNoEnd = -1;

// Redis accepts whole milliseconds.
std::string milliseconds(Time time) {
  const long long count = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  return std::to_string(std::clamp(count, 1LL, kYear));
}

class RedisLeases final : public LeaseTable {
 public:
  explicit RedisLeases(RedisConnection::Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  Result<bool> try_acquire(const RequestKey& request, const std::string& owner, Time lease,
                           const Deadline& deadline) override {
    Result<RedisReply> reply = ask({"SET", lease_key(request), owner, "NX", "PX", milliseconds(lease)}, deadline);
    if (!reply) return std::move(reply).error();
    if (reply->kind == Kind::Nothing) return false;
    if (reply->kind == Kind::Text && reply->text == "OK") return true;
    return no_answer("SET");
  }
  Result<bool> renew(const RequestKey& request, const std::string& owner, Time lease,
                     const Deadline& deadline) override {
    return yes_or_no({"EVAL", kRenew, "1", lease_key(request), owner, milliseconds(lease)}, deadline);
  }
  Status release(const RequestKey& request, const std::string& owner, const Deadline& deadline) override {
    Result<bool> released = yes_or_no({"EVAL", kRelease, "1", lease_key(request), owner}, deadline);
    if (!released) return std::move(released).error();
    return {};
  }
  Result<Time> remaining_ttl(const RequestKey& request, const Deadline& deadline) override {
    Result<RedisReply> reply = ask({"PTTL", lease_key(request)}, deadline);
    if (!reply) return std::move(reply).error();
    if (reply->kind != Kind::Number || reply->number < kNoKey || reply->number == kNoEnd) return no_answer("PTTL");
    if (reply->number == kNoKey) return Time(0);
    // 0 means that the lease expires within this millisecond.
    return Time(std::chrono::milliseconds(std::clamp(reply->number, 1LL, kYear)));
  }
  Result<bool> try_hedge(const RequestKey& request, unsigned count, Time window, const Deadline& deadline) override {
    return yes_or_no({"EVAL", kDraw, "1", hedge_key(request), std::to_string(count), milliseconds(window)}, deadline);
  }
  Status probe(const Deadline& deadline) override {
    Result<RedisReply> reply = ask({"PING"}, deadline);
    if (!reply) return std::move(reply).error();
    if (reply->text != "PONG") return no_answer("PING");
    return {};
  }
  std::string describe() const override { return endpoint_.url.describe(); }

 private:
  // A connection that threads use one at a time. Waiting for it counts against the timeout.
  struct ConnectionState {
    explicit ConnectionState(const RedisConnection::Endpoint& endpoint) : connection(endpoint) {}
    Mutex mutex;
    Condition freed;
    bool busy KILN_GUARDED_BY(mutex) = false;
    RedisConnection connection;  // used only by the holder of `ScopedConnection`
  };
  class ScopedConnection {
   public:
    ScopedConnection(ConnectionState& line, const Deadline& deadline) : line_(line) {
      const MutexLock lock(line.mutex);
      while (line.busy && deadline.remaining() > Time(0)) system_clock().wait_until(line.freed, line.mutex, deadline);
      mine_ = !std::exchange(line.busy, true);
    }
    ~ScopedConnection() {
      if (!mine_) return;
      const MutexLock lock(line_.mutex);
      line_.busy = false;
      line_.freed.notify_one();
    }
    ScopedConnection(const ScopedConnection&) = delete;
    ScopedConnection& operator=(const ScopedConnection&) = delete;
    bool mine() const { return mine_; }

   private:
    ConnectionState& line_;
    bool mine_ = false;
  };

  Result<RedisReply> ask(const std::vector<std::string>& command, const Deadline& given) {
    const Deadline deadline(system_clock(), given.remaining(), given.interrupt());
    ConnectionState& line = line_.get(endpoint_);
    const ScopedConnection turn(line, deadline);
    if (!turn.mine())
      return make_error(
          Code::TimedOut,
          describe() + ": timed out waiting for the connection, which other threads of this process were using");
    Result<RedisReply> reply = line.connection.ask({command.begin(), command.end()}, deadline);
    if (!reply) return make_error(reply.error().code, describe() + ": " + reply.error().message);
    return reply;
  }

  Result<bool> yes_or_no(const std::vector<std::string>& command, const Deadline& deadline) {
    Result<RedisReply> reply = ask(command, deadline);
    if (!reply) return std::move(reply).error();
    if (reply->kind != Kind::Number || reply->number < 0 || reply->number > 1) return no_answer(command[0]);
    return reply->number == 1;
  }

  Error no_answer(const std::string& command) const {
    return make_error(Code::Corrupt, describe() + ": the response to " + command + " is invalid");
  }

  const RedisConnection::Endpoint endpoint_;
  PerProcess<ConnectionState> line_;
};

}  // namespace

Result<std::unique_ptr<LeaseTable>> open_redis_leases(RedisOptions options) {
  Result<RedisUrl> url = RedisUrl::parse(options.url);
  if (!url) return std::move(url).error();
  if (!url->user.empty() && options.password_file.empty()) {
    return make_error(Code::InvalidArgument,
                      "the lease URL has a user but no password; set lease.password_file to a file "
                      "with its password");
  }
  if (!options.password_file.empty() && !is_this_machine(url->host)) {
    return make_error(
        Code::InvalidArgument,
        "the lease password would be sent unencrypted to " + url->describe() +
            "; encrypt the connection with stunnel or envoy on this machine (docs/how-to/share-a-cache.md) "
            "and use redis://127.0.0.1");
  }
  return std::unique_ptr<LeaseTable>(
      std::make_unique<RedisLeases>(RedisConnection::Endpoint{std::move(*url), std::move(options.password_file)}));
}

}  // namespace kiln
