// SPDX-License-Identifier: Apache-2.0
#include "remote/redis/redis_connection.hpp"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/error.hpp"
#include "remote/secret_file.hpp"

namespace kiln {
namespace {

using std::chrono::nanoseconds;

// Maximum size of one response. The longest expected one is a line; an error may have a few.
constexpr std::size_t kMaxBytes = 16 << 10;
constexpr std::size_t kMaxShown = 160;
constexpr std::chrono::milliseconds kInterruptInterval{40};  // between two polls of an interrupt check
constexpr std::chrono::seconds kMaxPoll{1000};

// Rejects every array allocation: a server could make the client reserve memory for any stated length.
template <class Count>
void* no_array(const redisReadTask*, Count) {
  return nullptr;
}

// Waits for events on a descriptor. Returns false on timeout.
bool ready(int fd, short events, const Deadline& deadline) {
  for (;;) {
    const nanoseconds remaining = deadline.remaining();
    if (remaining <= nanoseconds(0)) return false;
    const nanoseconds longest = deadline.interrupt() != nullptr ? kInterruptInterval : nanoseconds(kMaxPoll);
    const auto time = std::chrono::ceil<std::chrono::milliseconds>(std::min(remaining, longest));
    pollfd watched{fd, events, 0};
    const int found = poll(&watched, 1, static_cast<int>(time.count()));
    if (found > 0) return true;
    if (deadline.interrupt() != nullptr) (void)deadline.interrupt()->poll();
    if (found < 0 && errno != EINTR) return true;  // the following call returns the error
  }
}

Error timed_out() { return make_error(Code::TimedOut, "timed out"); }
Error broken(int error) { return make_error(Code::Unavailable, "connection failed: " + errno_message(error)); }

std::string printable(std::string_view text) {
  std::string shown(text.substr(0, kMaxShown));
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return shown;
}

// Converts an error response. Its first word is a code for programs.
Error warning(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(' '));
  for (const std::string_view rejection : {"NOAUTH", "WRONGPASS", "NOPERM"}) {
    if (word == rejection) return make_error(Code::Denied, "access denied: " + printable(text));
  }
  return make_error(Code::Unavailable, "server error: " + printable(text));
}

RedisReply reply_of(const redisReply& made) {
  RedisReply reply;
  if (made.str != nullptr) reply.text.assign(made.str, made.len);
  reply.number = made.integer;
  if (made.type == REDIS_REPLY_ERROR) reply.kind = RedisReply::Kind::Error;
  if (made.type == REDIS_REPLY_STRING || made.type == REDIS_REPLY_STATUS) reply.kind = RedisReply::Kind::Text;
  if (made.type == REDIS_REPLY_INTEGER) reply.kind = RedisReply::Kind::Number;
  return reply;
}

Result<std::string> password_in(const std::string& path) {
  auto line = read_secret(path);
  if (!line) return std::move(line).error();
  if (!*line) return make_error(Code::Unavailable, "the password file " + path + " does not exist");
  if ((*line)->empty()) return make_error(Code::Unavailable, "the password file " + path + " has an empty first line");
  return std::move(**line);
}

}  // namespace

// hiredis's incremental parser and the functions with which it creates replies.
struct RedisConnection::Protocol {
  redisReader* reader = redisReaderCreate();
  redisReplyObjectFunctions functions = reader != nullptr ? *reader->fn : redisReplyObjectFunctions{};
  Protocol() {
    functions.createArray = no_array;
    if (reader != nullptr) reader->fn = &functions;
  }
  ~Protocol() {
    if (reader != nullptr) redisReaderFree(reader);
  }
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;
};

RedisConnection::RedisConnection(const Endpoint& endpoint) : endpoint_(endpoint) {}
RedisConnection::~RedisConnection() = default;

Result<RedisReply> RedisConnection::ask(const std::vector<std::string_view>& command, const Deadline& deadline) {
  if (deadline.remaining() <= nanoseconds(0)) return make_error(Code::TimedOut, "no time left for the request");
  if (socket_ && stale()) close();
  if (!socket_) {
    if (Status opened = open(deadline); !opened) {
      close();
      return std::move(opened).error();
    }
  }
  Result<RedisReply> reply = exchange(command, deadline);
  if (reply && reply->kind == RedisReply::Kind::Error) reply = warning(reply->text);
  // A late response would be taken for the response to the next request. After an error response, the next connection
  // may use a new password or reach the new primary.
  if (!reply) close();
  return reply;
}

// Returns whether the idle connection has input. No request is pending, so it is either closed or out of sync.
bool RedisConnection::stale() const {
  if (protocol_->reader->len > protocol_->reader->pos) return true;
  pollfd watched{socket_.get(), POLLIN, 0};
  return poll(&watched, 1, 0) != 0;
}

void RedisConnection::close() {
  socket_ = Fd();
  protocol_.reset();
}

Status RedisConnection::open(const Deadline& deadline) {
  Result<std::vector<DnsLookup::Address>> found = names_.find(endpoint_.url.host, endpoint_.url.port, deadline);
  if (!found) return std::move(found).error();
  Status connected = timed_out();
  for (std::size_t i = 0; i < found->size() && !connected; ++i) {
    // An address that drops all packets must leave time for the next one.
    const auto share = deadline.remaining() / static_cast<std::int64_t>(found->size() - i);
    connected = connect((*found)[i], Deadline(system_clock(), share, deadline.interrupt()));
  }
  if (!connected) return connected;
  protocol_ = std::make_unique<Protocol>();
  if (protocol_->reader == nullptr) return make_error(Code::Unavailable, "out of memory for the connection");
  return authenticate(deadline);
}

Status RedisConnection::connect(const DnsLookup::Address& address, const Deadline& deadline) {
  socket_ = Fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) return broken(errno);
  const int on = 1;
  (void)setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0) return {};
  if (errno != EINPROGRESS) return broken(errno);
  if (!ready(socket_.get(), POLLOUT, deadline)) return timed_out();
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return broken(error);
  return {};
}

Status RedisConnection::authenticate(const Deadline& deadline) {
  if (!endpoint_.password_file.empty()) {
    // Read for each connection, so that a password change needs no restart.
    Result<std::string> password = password_in(endpoint_.password_file);
    if (!password) return std::move(password).error();
    std::vector<std::string_view> command{"AUTH"};
    if (!endpoint_.url.user.empty()) command.emplace_back(endpoint_.url.user);
    command.emplace_back(*password);
    Result<RedisReply> reply = exchange(command, deadline);
    std::fill(password->begin(), password->end(), '\0');
    if (!reply) return std::move(reply).error();
    // The message does not contain the response: a server that does not know the command repeats its arguments.
    if (reply->kind == RedisReply::Kind::Error)
      return make_error(Code::Denied, "the server rejected the user and password");
    if (reply->text != "OK") return make_error(Code::Corrupt, "invalid response to AUTH");
  }
  if (endpoint_.url.database != 0) {
    Result<RedisReply> reply = exchange({"SELECT", std::to_string(endpoint_.url.database)}, deadline);
    if (!reply) return std::move(reply).error();
    if (reply->kind == RedisReply::Kind::Error) return warning(reply->text);
    if (reply->text != "OK") return make_error(Code::Corrupt, "invalid response to SELECT");
  }
  return {};
}

Result<RedisReply> RedisConnection::exchange(const std::vector<std::string_view>& command, const Deadline& deadline) {
  std::vector<const char*> arguments;
  std::vector<std::size_t> sizes;
  for (const std::string_view argument : command) {
    arguments.push_back(argument.data());
    sizes.push_back(argument.size());
  }
  char* text = nullptr;
  const int size = redisFormatCommandArgv(&text, static_cast<int>(arguments.size()), arguments.data(), sizes.data());
  if (size < 0) return make_error(Code::Unavailable, "out of memory for a command");
  Status sent = send_all({text, static_cast<std::size_t>(size)}, deadline);
  redisFreeCommand(text);
  if (!sent) return std::move(sent).error();
  return receive(deadline);
}

Status RedisConnection::send_all(std::string_view bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t put = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!ready(socket_.get(), POLLOUT, deadline)) return timed_out();
    } else if (errno != EINTR) {
      return broken(errno);
    }
  }
  return {};
}

Result<RedisReply> RedisConnection::receive(const Deadline& deadline) {
  std::size_t bytes = 0;
  for (;;) {
    void* made = nullptr;
    if (redisReaderGetReply(protocol_->reader, &made) != REDIS_OK || bytes > kMaxBytes) {
      if (made != nullptr) protocol_->functions.freeObject(made);
      return make_error(Code::Corrupt, "the response is not valid Redis protocol");
    }
    if (made != nullptr) {
      RedisReply said = reply_of(*static_cast<const redisReply*>(made));
      protocol_->functions.freeObject(made);
      return said;
    }
    char buffer[1024];
    const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
    if (got > 0) {
      bytes += static_cast<std::size_t>(got);
      (void)redisReaderFeed(protocol_->reader, buffer, static_cast<std::size_t>(got));
    } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!ready(socket_.get(), POLLIN, deadline)) return timed_out();
    } else if (got == 0) {
      return make_error(Code::Unavailable, "the server closed the connection");
    } else if (errno != EINTR) {
      return broken(errno);
    }
  }
}

}  // namespace kiln
