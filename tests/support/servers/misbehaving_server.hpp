// SPDX-License-Identifier: Apache-2.0
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

#include "base/files/files.hpp"
#include "support/servers/loopback.hpp"

namespace kiln::test {

/// The behavior of a misbehaving server.
enum class Mode {
  Silent,          ///< never responds
  Slow,            ///< sends a complete response at twenty bytes per second
  Closes,          ///< closes the connection without a response
  Resets,          ///< resets the connection without a response
  ResetsMidway,    ///< resets the connection in the middle of a body
  Garbage,         ///< sends bytes that are not HTTP
  Truncates,       ///< states the length of the body and sends half of it
  Endless,         ///< states no length and never ends
  EndlessHeaders,  ///< never ends the headers
  ClaimsTooMuch,   ///< announces a body of many terabytes and waits
  Says,            ///< sends the given bytes and closes
};

/// A server on a free port of the loopback that treats every client in the same way. It reads a request up to the first
/// empty line and has a thread for each connection.
class MisbehavingServer {
 public:
  explicit MisbehavingServer(Mode mode, std::string says = {}) : mode_(mode), says_(std::move(says)) {
    Listener listener = listen_on();
    listener_ = std::move(listener.socket);
    port_ = listener.port;
    thread_ = std::thread([this] { accept_all(); });
  }
  ~MisbehavingServer() {
    stop_ = true;
    thread_.join();
    for (std::thread& one : connection_threads_) one.join();
  }
  MisbehavingServer(const MisbehavingServer&) = delete;
  MisbehavingServer& operator=(const MisbehavingServer&) = delete;

  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::uint64_t connections() const { return connections_; }

 private:
  static constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";

  void accept_all() {
    while (!stop_) {
      if (!ready(listener_.get(), 20)) continue;
      Fd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection) continue;
      ++connections_;
      connection_threads_.emplace_back([this, fd = std::move(connection)]() mutable { serve(std::move(fd)); });
    }
  }

  static bool ready(int fd, int milliseconds) {
    pollfd watched{fd, POLLIN, 0};
    return poll(&watched, 1, milliseconds) > 0;
  }

  /// Returns whether a request was received.
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

  /// Waits until the client disconnects or the server ends.
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

  /// Sends the same bytes repeatedly until the client disconnects.
  void repeat(int fd, const std::string& text, std::chrono::milliseconds pause) const {
    const timeval hang_timeout{0, 50'000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &hang_timeout, sizeof hang_timeout);
    while (!stop_ && send_all(fd, text)) std::this_thread::sleep_for(pause);
  }

  void serve(Fd connection) {
    const int fd = connection.get();
    if (!read_request(fd)) return;
    switch (mode_) {
      case Mode::Silent: wait_out(fd); return;
      case Mode::Slow:
        if (send_all(fd, kHead)) repeat(fd, "x", std::chrono::milliseconds(50));
        return;
      case Mode::Closes: return;
      case Mode::Resets: reset(fd); return;
      case Mode::ResetsMidway:
        (void)send_all(fd, std::string(kHead) + std::string(500, 'x'));
        // Otherwise the reset could overtake the sent bytes.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        reset(fd);
        return;
      case Mode::Garbage:
        (void)send_all(fd,
                       "\x7f"
                       "ELF\x02 is what this begins with\n\n\n" +
                           std::string(500, '\xfe'));
        return;
      case Mode::Truncates: (void)send_all(fd, std::string(kHead) + std::string(500, 'x')); return;
      case Mode::Endless:
        if (send_all(fd, "HTTP/1.1 200 OK\r\n\r\n")) repeat(fd, std::string(4096, 'x'), {});
        return;
      case Mode::EndlessHeaders:
        if (send_all(fd, "HTTP/1.1 200 OK\r\n")) repeat(fd, "X-More: " + std::string(1000, 'x') + "\r\n", {});
        return;
      case Mode::ClaimsTooMuch:
        if (send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000\r\n\r\n")) wait_out(fd);
        return;
      case Mode::Says: (void)send_all(fd, says_); return;
    }
  }

  const Mode mode_;
  const std::string says_;
  Fd listener_;
  std::uint16_t port_ = 0;
  std::atomic<std::uint64_t> connections_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> connection_threads_;  // used only by the accepting thread until it ends
  std::thread thread_;
};

}  // namespace kiln::test
