#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/fleet/servers.hpp"

namespace kiln::fleet {

/// Why a host compiled.
struct Compiles {
  std::uint64_t held = 0;         ///< by whoever had the lease first
  std::uint64_t taken_over = 0;   ///< by whoever took it when it had lapsed
  std::uint64_t hedged = 0;       ///< besides a holder
  std::uint64_t gave_up = 0;      ///< having waited long enough
  std::uint64_t no_budget = 0;    ///< without a lease: servers had used up the time that they have
  std::uint64_t server_gone = 0;  ///< without a lease: its server was given up

  std::uint64_t all() const { return held + taken_over + hedged + gave_up + no_budget + server_gone; }
};

/// What a run came to.
struct Outcome {
  Compiles compiles;         ///< of the measured batch
  Compiles compiles_before;  ///< of those before it
  std::uint64_t unique_keys = 0;
  std::uint64_t hits = 0;  ///< found on the servers
  std::uint64_t stalled = 0;
  std::uint64_t openings = 0;  ///< of breakers
  std::uint64_t refused = 0;   ///< questions that were not asked: no time left, or the server was given up
  std::uint64_t spared = 0;    ///< known to be absent
  std::uint64_t timeouts = 0;
  std::uint64_t lost_uploads = 0;
  Servers::Counts servers;
  double p50_warm_s = 0;  ///< from the beginning of the batch until half of all hosts have every kernel …
  double p99_warm_s = 0;  ///< … until 99 % have
  double p99_host_s = 0;  ///< what 99 % of the hosts waited from their own beginning, or less
  std::string first_bottleneck;
  std::uint64_t events = 0;

  double compiles_per_key() const {
    return unique_keys == 0 ? 0 : static_cast<double>(compiles.all()) / static_cast<double>(unique_keys);
  }
};

/// What fleets do without kiln: the same hosts, kernels and wires.
struct Baseline {
  std::string name;
  double compiles_per_key = 0;
  double p99_warm_s = 0;
  double p99_host_s = 0;
  double peak_rps = 0;
  double bytes = 0;
};

/// The value below which this share of them lies.
double percentile(std::vector<double> values, double share);

}  // namespace kiln::fleet
