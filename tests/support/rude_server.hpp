#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "support/loopback.hpp"

namespace kiln::test {

/// How a server treats whoever asks it something.
enum class Manner {
  Silent,          ///< never answers
  Slow,            ///< sends a whole answer, twenty bytes in a second
  Closes,          ///< closes the connection without an answer
  Resets,          ///< likewise, by a reset
  ResetsMidway,    ///< resets in the middle of a body
  Garbage,         ///< answers with what is no HTTP
  Truncates,       ///< says how long the body is, and sends half of it
  Endless,         ///< says nothing of a length, and never ends
  EndlessHeaders,  ///< never comes to the body
  ClaimsTooMuch,   ///< says that a body of many terabytes follows, and waits
  Says,            ///< sends given bytes, and closes
};

/// Speaks to everybody who connects to a free port of the loopback, in one manner. Reads a request up to its first
/// empty line. Has a thread for each connection.
class RudeServer {
 public:
  explicit RudeServer(Manner manner, std::string says = {}) : manner_(manner), says_(std::move(says)) {
    Listener listener = listen_on();
    listener_ = std::move(listener.socket);
    port_ = listener.port;
    thread_ = std::thread([this] { accept_all(); });
  }
  ~RudeServer() {
    stop_ = true;
    thread_.join();
    for (std::thread& one : guests_) one.join();
  }
  RudeServer(const RudeServer&) = delete;
  RudeServer& operator=(const RudeServer&) = delete;

  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::uint64_t connections() const { return connections_; }

 private:
  static constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";

  void accept_all() {
    while (!stop_) {
      if (!ready(listener_.get(), 20)) continue;
      Fd guest(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!guest) continue;
      ++connections_;
      guests_.emplace_back([this, fd = std::move(guest)]() mutable { serve(std::move(fd)); });
    }
  }

  static bool ready(int fd, int milliseconds) {
    pollfd watched{fd, POLLIN, 0};
    return poll(&watched, 1, milliseconds) > 0;
  }

  /// Whether a request came.
  bool read_request(int fd) const {
    std::string request;
    char buffer[4096];
    while (!stop_ && request.find("\r\n\r\n") == std::string::npos) {
      if (!ready(fd, 20)) continue;
      const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
      if (got <= 0) return false;
      request.append(buffer, static_cast<std::size_t>(got));
    }
    return !stop_;
  }

  static bool send_all(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t put = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }

  /// Until the guest is gone, or we are.
  void wait_out(int fd) const {
    char buffer[4096];
    while (!stop_) {
      if (ready(fd, 20) && recv(fd, buffer, sizeof buffer, 0) <= 0) return;
    }
  }

  static void reset(int fd) {
    const linger now{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }

  /// The same bytes again and again, for as long as somebody takes them.
  void repeat(int fd, const std::string& text, std::chrono::milliseconds pause) const {
    const timeval patience{0, 50'000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    while (!stop_ && send_all(fd, text)) std::this_thread::sleep_for(pause);
  }

  void serve(Fd guest) {
    const int fd = guest.get();
    if (!read_request(fd)) return;
    switch (manner_) {
      case Manner::Silent: wait_out(fd); return;
      case Manner::Slow:
        if (send_all(fd, kHead)) repeat(fd, "x", std::chrono::milliseconds(50));
        return;
      case Manner::Closes: return;
      case Manner::Resets: reset(fd); return;
      case Manner::ResetsMidway:
        (void)send_all(fd, std::string(kHead) + std::string(500, 'x'));
        // Else the reset could overtake what was sent.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        reset(fd);
        return;
      case Manner::Garbage:
        (void)send_all(fd,
                       "\x7f"
                       "ELF\x02 is what this begins with\n\n\n" +
                           std::string(500, '\xfe'));
        return;
      case Manner::Truncates: (void)send_all(fd, std::string(kHead) + std::string(500, 'x')); return;
      case Manner::Endless:
        if (send_all(fd, "HTTP/1.1 200 OK\r\n\r\n")) repeat(fd, std::string(4096, 'x'), {});
        return;
      case Manner::EndlessHeaders:
        if (send_all(fd, "HTTP/1.1 200 OK\r\n")) repeat(fd, "X-More: " + std::string(1000, 'x') + "\r\n", {});
        return;
      case Manner::ClaimsTooMuch:
        if (send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000\r\n\r\n")) wait_out(fd);
        return;
      case Manner::Says: (void)send_all(fd, says_); return;
    }
  }

  const Manner manner_;
  const std::string says_;
  Fd listener_;
  std::uint16_t port_ = 0;
  std::atomic<std::uint64_t> connections_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> guests_;  // the accepting thread's own, until that has ended
  std::thread thread_;
};

}  // namespace kiln::test
