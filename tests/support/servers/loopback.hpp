// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/files/files.hpp"

namespace kiln::test {

/// A listening socket of this machine.
struct Listener {
  Fd socket;
  std::uint16_t port = 0;
};

/// Listens on a free port or on this one, even if another process has just released it.
inline Listener listen_on(const std::string& ip = "127.0.0.1", std::uint16_t port = 0, int backlog = 64) {
  Listener made{Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, ip.c_str(), &address.sin_addr);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  const int yes = 1;
  setsockopt(made.socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (!made.socket || bind(made.socket.get(), plain, size) != 0 || listen(made.socket.get(), backlog) != 0 ||
      getsockname(made.socket.get(), plain, &size) != 0) {
    throw std::runtime_error("cannot listen on " + ip);
  }
  made.port = ntohs(address.sin_port);
  return made;
}

}  // namespace kiln::test
