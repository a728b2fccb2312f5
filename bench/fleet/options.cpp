// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/options.hpp"

#include <cstdlib>
#include <functional>

namespace kiln::fleet {
namespace {

struct Option {
  const char* name;
  const char* meaning;
  double minimum;
  double maximum;
  std::function<void(Scenario&, double)> set;
};

template <class Whole>
Whole whole(double value) {
  return static_cast<Whole>(value);
}
Time microseconds(double value) { return from_seconds(value * 1e-6); }

const std::vector<Option>& options() {
  using S = Scenario;
  static const std::vector<Option> all = {
      {"--hosts", "number of hosts", 1, 1e6, [](S& s, double v) { s.hosts = whole<std::uint32_t>(v); }},
      {"--keys", "kernels that every host needs", 1, 1e5, [](S& s, double v) { s.keys = whole<std::uint32_t>(v); }},
      {"--seed", "seed of the random numbers", 0, 1e15, [](S& s, double v) { s.seed = whole<std::uint64_t>(v); }},
      {"--lanes", "concurrent requests per host", 1, 1024, [](S& s, double v) { s.lanes = whole<unsigned>(v); }},
      {"--window-s", "time within which the hosts start", 0, 1e6, [](S& s, double v) { s.window = v; }},
      {"--waves", "waves of a rolling restart", 1, 1e5, [](S& s, double v) { s.waves = whole<unsigned>(v); }},
      {"--least-cost-s", "minimum time of a compile", 0, 1e4, [](S& s, double v) { s.min_cost = v; }},
      {"--most-cost-s", "maximum time of a compile", 0, 1e4, [](S& s, double v) { s.max_cost = v; }},
      {"--stalled", "fraction of holders that stall", 0, 0.5, [](S& s, double v) { s.stalled = v; }},
      {"--cost-known", "1: hosts remember compile times", 0, 1, [](S& s, double v) { s.cost_known = v != 0; }},
      {"--shuffled", "0: all hosts start at the same key", 0, 1, [](S& s, double v) { s.shuffled = v != 0; }},
      {"--waited", "1: callers wait for all requests", 0, 1, [](S& s, double v) { s.waited = v != 0; }},
      {"--connections-per-host", "connections of a host to the store; 0: one per lane", 0, 1024,
       [](S& s, double v) { s.connections = whole<unsigned>(v); }},
      {"--inlined-bytes", "maximum size of a content in its action; 0: separate", 0, 1e9,
       [](S& s, double v) { s.max_inlined_bytes = whole<std::uint64_t>(v); }},
      {"--compression", "factor by which artifacts shrink", 1, 1000, [](S& s, double v) { s.compression = v; }},
      {"--leases-more", "additional leases that hosts wait", 0, 100, [](S& s, double v) { s.leases_more = v; }},
      {"--wait-blind", "1: hosts wait for leases while the store is unavailable", 0, 1,
       [](S& s, double v) { s.wait_blind = v != 0; }},
      {"--entry-bytes", "size of an artifact", 1, 1e9, [](S& s, double v) { s.entry_bytes = whole<std::uint64_t>(v); }},
      {"--http-servers", "number of HTTP servers", 1, 1e4,
       [](S& s, double v) { s.costs.http_servers = whole<unsigned>(v); }},
      {"--http-workers", "workers per HTTP server", 1, 1024,
       [](S& s, double v) { s.costs.http_workers = whole<unsigned>(v); }},
      {"--http-read-us", "server time of a GET", 0, 1e6, [](S& s, double v) { s.costs.http_read = microseconds(v); }},
      {"--http-write-us", "server time of a PUT", 0, 1e6, [](S& s, double v) { s.costs.http_write = microseconds(v); }},
      {"--http-connect-us", "a new connection", 0, 1e6, [](S& s, double v) { s.costs.http_connect = microseconds(v); }},
      {"--http-mb-per-s", "network bandwidth of a server", 1, 1e6,
       [](S& s, double v) { s.costs.http_bytes_per_s = v * 1e6; }},
      {"--lease-servers", "number of lease servers", 1, 1e4,
       [](S& s, double v) { s.costs.lease_servers = whole<unsigned>(v); }},
      {"--lease-op-us", "server time of a lease operation", 0, 1e6,
       [](S& s, double v) { s.costs.lease_op = microseconds(v); }},
      {"--lease-connect-us", "a new connection to a lease server", 0, 1e6,
       [](S& s, double v) { s.costs.lease_connect = microseconds(v); }},
      {"--round-trip-us", "network round trip", 0, 1e7, [](S& s, double v) { s.costs.round_trip = microseconds(v); }},
      {"--loopback", "1: costs of kiln-fleet-real on its two cores", 0, 1,
       [](S& s, double v) {
         s.costs = v != 0 ? costs_of_loopback() : Costs();
         s.connections = v != 0 ? 0 : 1;  // HTTP/1.1 without TLS
       }},
      {"--machine-cores", "cores of the one shared machine; 0: none", 0, 1024,
       [](S& s, double v) { s.costs.machine_cores = whole<unsigned>(v); }},
      {"--client-http-us", "client CPU time of a GET or PUT", 0, 1e6,
       [](S& s, double v) { s.costs.client_http = microseconds(v); }},
      {"--client-lease-us", "client CPU time of a lease operation", 0, 1e6,
       [](S& s, double v) { s.costs.client_lease = microseconds(v); }},
      {"--budget-ms", "FleetPolicy::budget", 0, 1e6, [](S& s, double v) { s.policy.budget = from_seconds(v * 1e-3); }},
      {"--background-budget-ms", "FleetPolicy::background_budget", 0, 1e6,
       [](S& s, double v) { s.policy.background_budget = from_seconds(v * 1e-3); }},
      {"--query-ms", "FleetPolicy::query_timeout", 0, 1e6,
       [](S& s, double v) { s.policy.query_timeout = from_seconds(v * 1e-3); }},
      {"--slow-query-ms", "FleetPolicy::slow_query_timeout", 0, 1e6,
       [](S& s, double v) { s.policy.slow_query_timeout = from_seconds(v * 1e-3); }},
      {"--initial-wait-s", "FleetPolicy::initial_wait", 0, 1e6,
       [](S& s, double v) { s.policy.initial_wait = from_seconds(v); }},
      {"--max-wait-s", "FleetPolicy::max_wait", 0, 1e6, [](S& s, double v) { s.policy.max_wait = from_seconds(v); }},
      {"--wait-per-saved", "FleetPolicy::wait_per_saved", 0, 100, [](S& s, double v) { s.policy.wait_per_saved = v; }},
      {"--wait-per-time", "FleetPolicy::wait_per_time", 0, 100, [](S& s, double v) { s.policy.wait_per_time = v; }},
      {"--open-most-s", "FleetPolicy::open_most", 0, 1e6,
       [](S& s, double v) { s.policy.max_backoff = from_seconds(v); }},
      {"--lease-s", "FleetPolicy::lease", 0.01, 1e6, [](S& s, double v) { s.policy.lease_ttl = from_seconds(v); }},
      {"--poll-first-ms", "FleetPolicy::poll_first", 1, 1e6,
       [](S& s, double v) { s.policy.initial_poll_interval = from_seconds(v * 1e-3); }},
      {"--poll-most-ms", "FleetPolicy::poll_most", 1, 1e6,
       [](S& s, double v) { s.policy.max_poll_interval = from_seconds(v * 1e-3); }},
      {"--hedge-at", "FleetPolicy::hedge_at", 0, 1, [](S& s, double v) { s.policy.hedge_after_fraction = v; }},
  };
  return all;
}

std::string set(Scenario& scenario, const std::string& word, const std::string& text) {
  for (const Option& option : options()) {
    if (word != option.name) continue;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= option.minimum && value <= option.maximum)) {
      return word + ": '" + text + "' is not a valid value";
    }
    option.set(scenario, value);
    return "";
  }
  return "unknown option '" + word + "'";
}

}  // namespace

std::string usage() {
  std::string text =
      "usage: kiln-fleet-sim --scenario NAME --hosts N [OPTION VALUE]… [--json]\n  NAME: " + scenario_names() + "\n";
  for (const Option& option : options()) {
    text += "  " + std::string(option.name) + std::string(24 - std::string_view(option.name).size(), ' ') +
            option.meaning + "\n";
  }
  return text;
}

std::string read_options(const std::vector<std::string>& words, Scenario& scenario, bool& json) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--json") {
      json = true;
      continue;
    }
    if (i + 1 == words.size()) return "'" + words[i] + "' needs a value or is unknown";
    if (words[i] == "--scenario") {
      scenario.name = words[++i];
      continue;
    }
    const std::string problem = set(scenario, words[i], words[i + 1]);
    if (!problem.empty()) return problem;
    ++i;
  }
  if (!prepare(scenario)) return "unknown scenario '" + scenario.name + "'";
  return "";
}

}  // namespace kiln::fleet
