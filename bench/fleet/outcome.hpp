// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/fleet/servers.hpp"

namespace kiln::fleet {

/// Compiles by reason.
struct Compiles {
  std::uint64_t held = 0;         ///< by the first holder of the lease
  std::uint64_t taken_over = 0;   ///< by a host that took over an expired lease
  std::uint64_t hedged = 0;       ///< in addition to a holder
  std::uint64_t gave_up = 0;      ///< after a timeout
  std::uint64_t no_budget = 0;    ///< without a lease: the server time budget was used up
  std::uint64_t server_gone = 0;  ///< without a lease: the circuit of its server was open
  std::uint64_t skipped = 0;      ///< without asking: the account of waits was empty

  std::uint64_t all() const { return held + taken_over + hedged + gave_up + no_budget + server_gone + skipped; }
};

/// The result of a run.
struct Outcome {
  Compiles compiles;         ///< in the measured batch
  Compiles compiles_before;  ///< in the batches before it
  std::uint64_t unique_keys = 0;
  std::uint64_t hits = 0;  ///< found on the servers
  std::uint64_t stalled = 0;
  std::uint64_t openings = 0;   ///< opened circuits
  std::uint64_t slowdowns = 0;  ///< circuits that became slow
  std::uint64_t rejected = 0;   ///< requests not sent: no time left, or open circuit
  std::uint64_t spared = 0;     ///< answered by the negative cache
  std::uint64_t timeouts = 0;
  std::uint64_t lost_uploads = 0;
  Servers::Counts servers;
  double p50_warm_s = 0;  ///< from the start of the batch until half of all hosts have all kernels
  double p99_warm_s = 0;  ///< until 99 % of all hosts have all kernels
  double p99_host_s = 0;  ///< 99th percentile of a host's time from its own start
  std::string first_bottleneck;
  std::uint64_t events = 0;

  double compiles_per_key() const {
    return unique_keys == 0 ? 0 : static_cast<double>(compiles.all()) / static_cast<double>(unique_keys);
  }
};

/// Results of a fleet without kiln, with the same hosts, kernels and networks.
struct Baseline {
  std::string name;
  double compiles_per_key = 0;
  double p99_warm_s = 0;
  double p99_host_s = 0;
  double peak_rps = 0;
  double bytes = 0;
};

/// Returns the value below which this share of the values is.
double percentile(std::vector<double> values, double share);

}  // namespace kiln::fleet
