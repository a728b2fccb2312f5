// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "base/files/files.hpp"
#include "support/servers/loopback.hpp"

namespace kiln::test {

/// A proxy between a client and a server on the loopback that counts every byte in each direction, including protocol
/// overhead.
class CountingForwarder {
 public:
  explicit CountingForwarder(std::uint16_t server) : server_(server) {
    Listener listener = listen_on();
    listener_ = std::move(listener.socket);
    port_ = listener.port;
    thread_ = std::thread([this] { run(); });
  }
  ~CountingForwarder() {
    stop_ = true;
    thread_.join();
  }
  CountingForwarder(const CountingForwarder&) = delete;
  CountingForwarder& operator=(const CountingForwarder&) = delete;

  std::uint16_t port() const { return port_; }
  std::uint64_t to_server() const { return to_server_; }
  std::uint64_t to_client() const { return to_client_; }

 private:
  static constexpr int kStream = SOCK_STREAM | SOCK_CLOEXEC;

  struct Connection {
    Fd client;
    Fd server;
    bool client_done = false;
    bool server_done = false;
  };

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  void take() {
    Connection made;
    made.client = Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    made.server = Fd(socket(AF_INET, kStream, 0));
    const sockaddr_in address = loopback(server_);
    if (!made.client || !made.server) return;
    if (connect(made.server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
    connections_.push_back(std::move(made));
  }

  /// Forwards the available bytes. Returns true at the end of the stream.
  static bool pass(int from, int to, std::atomic<std::uint64_t>& count) {
    char buffer[1 << 16];
    const ssize_t got = recv(from, buffer, sizeof buffer, 0);
    if (got <= 0) {
      shutdown(to, SHUT_WR);
      return true;
    }
    count += static_cast<std::uint64_t>(got);
    std::string_view rest(buffer, static_cast<std::size_t>(got));
    while (!rest.empty()) {
      const ssize_t put = send(to, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (put <= 0) return true;
      rest.remove_prefix(static_cast<std::size_t>(put));
    }
    return false;
  }

  void run() {
    while (!stop_) {
      std::vector<pollfd> waiting{{listener_.get(), POLLIN, 0}};
      for (const Connection& one : connections_) {
        waiting.push_back({one.client_done ? -1 : one.client.get(), POLLIN, 0});
        waiting.push_back({one.server_done ? -1 : one.server.get(), POLLIN, 0});
      }
      if (poll(waiting.data(), waiting.size(), 50) <= 0) continue;
      for (std::size_t i = 0; i < connections_.size(); ++i) {
        Connection& one = connections_[i];
        if (waiting[1 + 2 * i].revents != 0) one.client_done = pass(one.client.get(), one.server.get(), to_server_);
        if (waiting[2 + 2 * i].revents != 0) one.server_done = pass(one.server.get(), one.client.get(), to_client_);
      }
      std::erase_if(connections_, [](const Connection& one) { return one.client_done && one.server_done; });
      if (waiting[0].revents != 0) take();
    }
  }

  const std::uint16_t server_;
  Fd listener_;
  std::uint16_t port_ = 0;
  std::atomic<std::uint64_t> to_server_{0};
  std::atomic<std::uint64_t> to_client_{0};
  std::atomic<bool> stop_{false};
  std::vector<Connection> connections_;  // used by the thread only
  std::thread thread_;
};

}  // namespace kiln::test
