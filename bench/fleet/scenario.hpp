// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/fleet/event_queue.hpp"
#include "remote/fleet_policy.hpp"
#include "remote/remote_store.hpp"

namespace kiln::fleet {

/// Costs of servers, networks and clients. The defaults are measurements of this project
/// (docs/internals/fleet-simulation.md).
struct Costs {
  unsigned http_servers = 1;  ///< mirrors: each has everything, and a host uses one of them
  unsigned http_workers = 4;  ///< processes per server
  Time http_read = std::chrono::microseconds(60);
  Time http_write = std::chrono::microseconds(180);
  Time http_connect = std::chrono::microseconds(700);  ///< with TLS; once for each connection
  double http_bytes_per_s = 1.25e9;                    ///< bandwidth of each server: 10 Gbit/s
  unsigned lease_servers = 1;                          ///< requests are distributed over them
  Time lease_op = std::chrono::microseconds(12);
  Time lease_connect = std::chrono::microseconds(40);
  Time round_trip = std::chrono::microseconds(500);
  /// If clients and servers share one machine: its cores, and the CPU time of a client for one request.
  unsigned machine_cores = 0;
  Time client_http{};
  Time client_lease{};
};

/// Returns the costs of clients and servers on kiln's two-core development machine, over loopback without TLS. Measured
/// with kiln-fleet-real as CPU time of clients and servers per request.
Costs costs_of_loopback();

/// A batch of keys, which hosts start in `waves` waves, `gap` apart; the hosts of one wave start within `spread`.
struct Batch {
  Time from{};
  unsigned waves = 1;
  Time gap{};
  Time spread{};
  std::uint32_t first_key = 0;
  std::uint32_t keys = 0;
};

struct Outage {
  Time from{};
  Time until{};
};

/// The input of a simulation: everything that the outcome depends on.
struct Scenario {
  std::string name = "cold_rollout";
  std::uint32_t hosts = 1000;
  std::uint32_t keys = 100;  ///< keys of a batch
  std::uint64_t seed = 1;
  unsigned lanes = 8;        ///< concurrent requests of a host, waiting or compiling
  unsigned connections = 1;  ///< connections of a host to the store (HTTP/2); 0 means one per lane (HTTP/1.1)
  double min_cost = 0.5;     ///< minimum compile time in seconds; uniform up to `max_cost`
  double max_cost = 5;
  std::uint64_t entry_bytes = 200 << 10;
  double compression = 7;                                           ///< factor by which an artifact shrinks on the wire
  std::uint64_t max_inlined_bytes = RemoteStore::kMaxInlinedBytes;  ///< of a content that its action result contains
  std::uint64_t hint_bytes = 4 << 10;
  std::uint64_t action_bytes = 600;
  double window = 60;          ///< time within which hosts start, in seconds
  unsigned waves = 20;         ///< waves of a rolling restart
  double stalled = 0.01;       ///< fraction of holders that stall during a compile and continue later
  double published = 0;        ///< fraction of the keys that are already published
  bool cost_known = false;     ///< whether hosts know compile times, which limit their waits
  bool shuffled = true;        ///< each host starts at another key (FleetPlace)
  bool waited = false;         ///< callers wait for all requests
  double leases_more = 2;      ///< leases that hosts wait for others in addition to a compile
  bool wait_blind = false;     ///< hosts wait for leases while the store is unavailable, as kiln once did
  double image_factor = 4;     ///< number of targets whose artifacts a directory image has
  std::vector<Batch> batches;  ///< set by `prepare`
  Outage outage;
  Costs costs;
  FleetPolicy policy;

  std::uint32_t all_keys() const;
  /// Returns the size of an artifact on the wire.
  std::uint64_t content_bytes() const {
    return static_cast<std::uint64_t>(static_cast<double>(entry_bytes) / compression);
  }
  /// Returns whether a hit needs no request for the content.
  bool is_inlined() const { return content_bytes() <= max_inlined_bytes; }
  /// Returns the last batch, which is the measured one.
  const Batch& measured() const { return batches.back(); }
};

/// Fills in the batches and the outage of the named scenario. Returns false for an unknown name.
bool prepare(Scenario& scenario);
/// Returns "cold_rollout, rolling_restart, …".
std::string scenario_names();

/// Values that depend only on the scenario and its seed.
Time cost_of(const Scenario& scenario, std::uint32_t key);
bool published_before(const Scenario& scenario, std::uint32_t key);
Time start_of(const Scenario& scenario, std::uint32_t host, const Batch& batch);
/// Returns the n-th key of a batch for a host.
std::uint32_t key_at(const Scenario& scenario, std::uint32_t host, const Batch& batch, std::uint32_t n);

}  // namespace kiln::fleet
