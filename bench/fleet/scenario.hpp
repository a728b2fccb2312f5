#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/fleet/event_queue.hpp"
#include "remote/fleet_policy.hpp"

namespace kiln::fleet {

/// What servers, wires and clients cost. The defaults are of this project's measurements (docs/fleet-simulation.md).
struct Costs {
  unsigned http_servers = 1;  ///< mirrors: each has everything, a host asks one of them
  unsigned http_workers = 4;  ///< processes of each
  Time http_read = std::chrono::microseconds(60);
  Time http_write = std::chrono::microseconds(180);
  Time http_connect = std::chrono::microseconds(700);  ///< with TLS; once for each lane of a host
  double http_bytes_per_s = 1.25e9;                    ///< what each server's wire carries: 10 Gbit/s
  unsigned lease_servers = 1;                          ///< requests are spread over them
  Time lease_op = std::chrono::microseconds(12);
  Time lease_connect = std::chrono::microseconds(40);
  Time round_trip = std::chrono::microseconds(500);
  /// Where clients and servers share one machine: its cores, and what a client itself needs of them for a question.
  unsigned machine_cores = 0;
  Time client_http{};
  Time client_lease{};
};

/// Those of clients and servers on the two cores that kiln is developed on, by loopback and without TLS: measured with
/// kiln-fleet-real as processor time of clients and servers by question.
Costs costs_of_loopback();

/// Hosts begin a batch in so many waves, `gap` apart, the hosts of one wave within `spread`.
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

/// One question to the simulation: everything that its answer depends on.
struct Scenario {
  std::string name = "cold_rollout";
  std::uint32_t hosts = 1000;
  std::uint32_t keys = 100;  ///< of a batch
  std::uint64_t seed = 1;
  unsigned lanes = 8;       ///< requests that a host works on at a time, waiting or compiling
  double least_cost = 0.5;  ///< of a compile, in seconds; spread evenly up to …
  double most_cost = 5;
  std::uint64_t entry_bytes = 200 << 10;
  std::uint64_t hint_bytes = 4 << 10;
  std::uint64_t action_bytes = 600;
  double window = 60;          ///< within which hosts begin, in seconds
  unsigned waves = 20;         ///< of a rolling restart
  double stalled = 0.01;       ///< share of holders that stop in the middle of a compile, and go on later
  double published = 0;        ///< share of the keys that are there already
  bool cost_known = false;     ///< whether hosts remember what a compile cost: bounds how long they wait
  bool shuffled = false;       ///< each host begins at another key
  double leases_more = 2;      ///< how many leases longer than for a compile hosts wait for others
  bool wait_blind = false;     ///< hosts wait for leases though the store is given up, as kiln once did
  double image_factor = 4;     ///< a directory image has the artifacts of so many targets
  std::vector<Batch> batches;  ///< by `prepare`
  Outage outage;
  Costs costs;
  FleetPolicy policy;

  std::uint32_t all_keys() const;
  /// Where measuring begins: the last batch.
  const Batch& measured() const { return batches.back(); }
};

/// Fills in the batches and the outage that the name stands for; false for a name that is none.
bool prepare(Scenario& scenario);
/// "cold_rollout, rolling_restart, …".
std::string scenario_names();

/// What depends on the seed alone.
Time cost_of(const Scenario& scenario, std::uint32_t key);
bool published_before(const Scenario& scenario, std::uint32_t key);
Time start_of(const Scenario& scenario, std::uint32_t host, const Batch& batch);
/// Which key a host asks for as its n-th of a batch.
std::uint32_t key_at(const Scenario& scenario, std::uint32_t host, const Batch& batch, std::uint32_t n);

}  // namespace kiln::fleet
