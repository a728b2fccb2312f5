#include "redis/redis_leases.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/per_process.hpp"
#include "redis/redis_connection.hpp"

namespace kiln {
namespace {

using Time = LeaseTable::Time;
using Kind = RedisReply::Kind;

// docs/leases.md explains them. A server runs a script as one step, so that nobody's lease is touched by whom it is
// not.
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
// What PTTL answers instead of a time. Nothing that we write has no end.
constexpr long long kNoKey = -2;
constexpr long long kNoEnd = -1;

// Redis takes whole milliseconds.
std::string milliseconds(Time time) {
  const long long count = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  return std::to_string(std::clamp(count, 1LL, kYear));
}

class RedisLeases final : public LeaseTable {
 public:
  explicit RedisLeases(RedisConnection::Place place) : place_(std::move(place)) {}

  Result<bool> take(const RequestKey& request, const std::string& owner, Time lease, Time limit) override {
    Result<RedisReply> reply = ask({"SET", lease_key(request), owner, "NX", "PX", milliseconds(lease)}, limit);
    if (!reply) return std::move(reply).error();
    if (reply->kind == Kind::Nothing) return false;
    if (reply->kind == Kind::Text && reply->text == "OK") return true;
    return no_answer("SET");
  }
  Result<bool> renew(const RequestKey& request, const std::string& owner, Time lease, Time limit) override {
    return yes_or_no({"EVAL", kRenew, "1", lease_key(request), owner, milliseconds(lease)}, limit);
  }
  Status release(const RequestKey& request, const std::string& owner, Time limit) override {
    Result<bool> released = yes_or_no({"EVAL", kRelease, "1", lease_key(request), owner}, limit);
    if (!released) return std::move(released).error();
    return {};
  }
  Result<Time> held(const RequestKey& request, Time limit) override {
    Result<RedisReply> reply = ask({"PTTL", lease_key(request)}, limit);
    if (!reply) return std::move(reply).error();
    if (reply->kind != Kind::Number || reply->number < kNoKey || reply->number == kNoEnd) return no_answer("PTTL");
    if (reply->number == kNoKey) return Time(0);
    // Zero is one that lapses within this millisecond.
    return Time(std::chrono::milliseconds(std::clamp(reply->number, 1LL, kYear)));
  }
  Result<bool> draw(const RequestKey& request, unsigned count, Time window, Time limit) override {
    return yes_or_no({"EVAL", kDraw, "1", hedge_key(request), std::to_string(count), milliseconds(window)}, limit);
  }
  Status probe(Time limit) override {
    Result<RedisReply> reply = ask({"PING"}, limit);
    if (!reply) return std::move(reply).error();
    if (reply->text != "PONG") return no_answer("PING");
    return {};
  }
  std::string describe() const override { return place_.url.describe(); }

 private:
  // Callers take turns at the connection; waiting for one's turn counts.
  struct Line {
    explicit Line(const RedisConnection::Place& place) : connection(place) {}
    Mutex mutex;
    Condition freed;
    bool busy KILN_GUARDED_BY(mutex) = false;
    RedisConnection connection;  // of whose turn it is
  };
  class Turn {
   public:
    Turn(Line& line, const Deadline& deadline) : line_(line) {
      const MutexLock lock(line.mutex);
      while (line.busy && deadline.left() > Time(0)) (void)line.freed.wait_for(line.mutex, deadline.left());
      mine_ = !std::exchange(line.busy, true);
    }
    ~Turn() {
      if (!mine_) return;
      const MutexLock lock(line_.mutex);
      line_.busy = false;
      line_.freed.notify_one();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    bool mine() const { return mine_; }

   private:
    Line& line_;
    bool mine_ = false;
  };

  Result<RedisReply> ask(const std::vector<std::string>& command, Time limit) {
    const Deadline deadline(system_clock(), limit);
    Line& line = line_.get(place_);
    const Turn turn(line, deadline);
    if (!turn.mine())
      return failure(Code::TimedOut, describe() + ": others of this process were asking it all the time");
    Result<RedisReply> reply = line.connection.ask({command.begin(), command.end()}, deadline);
    if (!reply) return failure(reply.error().code, describe() + ": " + reply.error().message);
    return reply;
  }

  Result<bool> yes_or_no(const std::vector<std::string>& command, Time limit) {
    Result<RedisReply> reply = ask(command, limit);
    if (!reply) return std::move(reply).error();
    if (reply->kind != Kind::Number || reply->number < 0 || reply->number > 1) return no_answer(command[0]);
    return reply->number == 1;
  }

  Error no_answer(const std::string& command) const {
    return failure(Code::Corrupt, describe() + ": what it answers to " + command + " is no answer");
  }

  const RedisConnection::Place place_;
  PerProcess<Line> line_;
};

}  // namespace

Result<std::unique_ptr<LeaseTable>> open_redis_leases(RedisOptions options) {
  Result<RedisUrl> url = RedisUrl::parse(options.url);
  if (!url) return std::move(url).error();
  if (!url->user.empty() && options.password_file.empty()) {
    return failure(Code::InvalidArgument,
                   "the address of the leases names a user: lease.password_file must name a file "
                   "with its password");
  }
  return std::unique_ptr<LeaseTable>(
      std::make_unique<RedisLeases>(RedisConnection::Place{std::move(*url), std::move(options.password_file)}));
}

}  // namespace kiln
