// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "base/clock.hpp"

namespace kiln {

/// A DNS lookup with a deadline. getaddrinfo has no timeout, so a slow lookup continues on its own thread, at most one,
/// and a later call uses its result. Not thread-safe.
class DnsLookup {
 public:
  struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
  };
  /// Returns at least one address.
  Result<std::vector<Address>> find(const std::string& host, std::uint16_t port, const Deadline& deadline);

 private:
  struct Pending;
  std::shared_ptr<Pending> pending_;
};

}  // namespace kiln
