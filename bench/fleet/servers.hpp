// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "bench/fleet/scenario.hpp"
#include "bench/fleet/service_queue.hpp"

namespace kiln::fleet {

enum class Op : std::uint8_t {
  ReadHint,
  ReadAction,
  ReadContent,
  CheckAction,  ///< of an upload: whether a release has already published the entry
  WriteContent,
  WriteAction,
  CheckHint,  ///< of an upload: reads the existing dependency sets
  WriteHint,
  ProbeHttp,
  Take,
  Renew,
  Release,
  Held,
  Draw,
  ProbeLeases,
};
constexpr bool is_lease(Op op) { return op >= Op::Take; }

/// The servers and their networks as queues. Computes the time of each response and counts requests. `ServerState`
/// holds the contents of the servers.
class Servers {
 public:
  explicit Servers(const Scenario& scenario);

  struct Reply {
    Time at{};
    bool lost = false;  ///< the server is down: no response and no effect
  };
  /// Sends a request of a host at `now`. `connecting` is true for the first request on a connection.
  Reply ask(Op op, std::uint32_t host, std::uint32_t key, bool connecting, Time now);

  struct Counts {
    std::uint64_t http = 0;
    std::uint64_t leases = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;
    std::uint32_t peak_http = 0;  ///< maximum in one second
    std::uint32_t peak_leases = 0;
    std::uint32_t peak_both = 0;
  };
  Counts counts() const;
  /// Returns all queues, including those of the networks.
  std::vector<const ServiceQueue*> stations() const;

 private:
  std::uint64_t bytes_of(Op op) const;
  Time work_of(Op op, bool connecting) const;

  const Scenario& scenario_;
  std::vector<ServiceQueue> http_;
  std::vector<ServiceQueue> wires_;
  std::vector<ServiceQueue> leases_;
  ServiceQueue machine_;
  Counts counts_;
  std::vector<std::uint32_t> http_by_second_;
  std::vector<std::uint32_t> leases_by_second_;
};

}  // namespace kiln::fleet
