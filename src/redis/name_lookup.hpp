#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// Where a name leads, within a limit of time. The system's own lookup knows no limit, so that one that takes longer
/// goes on on a thread of its own, one at most, and its answer serves a later call. Not thread-safe.
class NameLookup {
 public:
  struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
  };
  /// At least one address.
  Result<std::vector<Address>> find(const std::string& host, std::uint16_t port, std::chrono::nanoseconds limit);

 private:
  struct Pending;
  std::shared_ptr<Pending> pending_;
};

}  // namespace kiln
