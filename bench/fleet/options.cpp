#include "bench/fleet/options.hpp"

#include <cstdlib>
#include <functional>

namespace kiln::fleet {
namespace {

struct Option {
  const char* name;
  const char* meaning;
  double least;
  double most;
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
      {"--hosts", "how many", 1, 1e6, [](S& s, double v) { s.hosts = whole<std::uint32_t>(v); }},
      {"--keys", "kernels that every host wants", 1, 1e5, [](S& s, double v) { s.keys = whole<std::uint32_t>(v); }},
      {"--seed", "another one, another run", 0, 1e15, [](S& s, double v) { s.seed = whole<std::uint64_t>(v); }},
      {"--lanes", "requests that a host works on at a time", 1, 1024,
       [](S& s, double v) { s.lanes = whole<unsigned>(v); }},
      {"--window-s", "within which the hosts begin", 0, 1e6, [](S& s, double v) { s.window = v; }},
      {"--waves", "of a rolling restart", 1, 1e5, [](S& s, double v) { s.waves = whole<unsigned>(v); }},
      {"--least-cost-s", "of a compile", 0, 1e4, [](S& s, double v) { s.least_cost = v; }},
      {"--most-cost-s", "of a compile", 0, 1e4, [](S& s, double v) { s.most_cost = v; }},
      {"--stalled", "share of holders that stop for a while", 0, 0.5, [](S& s, double v) { s.stalled = v; }},
      {"--cost-known", "1: hosts remember what a compile cost", 0, 1, [](S& s, double v) { s.cost_known = v != 0; }},
      {"--shuffled", "1: each host begins at another key", 0, 1, [](S& s, double v) { s.shuffled = v != 0; }},
      {"--leases-more", "leases that hosts wait longer than for a compile", 0, 100,
       [](S& s, double v) { s.leases_more = v; }},
      {"--wait-blind", "1: hosts wait for leases though the store is given up", 0, 1,
       [](S& s, double v) { s.wait_blind = v != 0; }},
      {"--entry-bytes", "of an artifact", 1, 1e9, [](S& s, double v) { s.entry_bytes = whole<std::uint64_t>(v); }},
      {"--http-servers", "mirrors", 1, 1e4, [](S& s, double v) { s.costs.http_servers = whole<unsigned>(v); }},
      {"--http-workers", "of each", 1, 1024, [](S& s, double v) { s.costs.http_workers = whole<unsigned>(v); }},
      {"--http-read-us", "a GET in a worker", 0, 1e6, [](S& s, double v) { s.costs.http_read = microseconds(v); }},
      {"--http-write-us", "a PUT", 0, 1e6, [](S& s, double v) { s.costs.http_write = microseconds(v); }},
      {"--http-connect-us", "a new connection", 0, 1e6, [](S& s, double v) { s.costs.http_connect = microseconds(v); }},
      {"--http-mb-per-s", "what a server's wire carries", 1, 1e6,
       [](S& s, double v) { s.costs.http_bytes_per_s = v * 1e6; }},
      {"--lease-servers", "requests are spread over them", 1, 1e4,
       [](S& s, double v) { s.costs.lease_servers = whole<unsigned>(v); }},
      {"--lease-op-us", "a question to one", 0, 1e6, [](S& s, double v) { s.costs.lease_op = microseconds(v); }},
      {"--lease-connect-us", "a new connection to one", 0, 1e6,
       [](S& s, double v) { s.costs.lease_connect = microseconds(v); }},
      {"--round-trip-us", "between a host and a server", 0, 1e7,
       [](S& s, double v) { s.costs.round_trip = microseconds(v); }},
      {"--loopback", "1: all on the two cores that kiln-fleet-real was measured on", 0, 1,
       [](S& s, double v) { s.costs = v != 0 ? costs_of_loopback() : Costs(); }},
      {"--machine-cores", "all on one machine with so many; 0: not", 0, 1024,
       [](S& s, double v) { s.costs.machine_cores = whole<unsigned>(v); }},
      {"--client-http-us", "what a client needs of them for a GET or PUT", 0, 1e6,
       [](S& s, double v) { s.costs.client_http = microseconds(v); }},
      {"--client-lease-us", "for a question about a lease", 0, 1e6,
       [](S& s, double v) { s.costs.client_lease = microseconds(v); }},
      {"--budget-ms", "FleetPolicy::budget", 0, 1e6, [](S& s, double v) { s.policy.budget = from_seconds(v * 1e-3); }},
      {"--open-most-s", "FleetPolicy::open_most", 0, 1e6, [](S& s, double v) { s.policy.open_most = from_seconds(v); }},
      {"--lease-s", "FleetPolicy::lease", 0.01, 1e6, [](S& s, double v) { s.policy.lease = from_seconds(v); }},
      {"--poll-first-ms", "FleetPolicy::poll_first", 1, 1e6,
       [](S& s, double v) { s.policy.poll_first = from_seconds(v * 1e-3); }},
      {"--poll-most-ms", "FleetPolicy::poll_most", 1, 1e6,
       [](S& s, double v) { s.policy.poll_most = from_seconds(v * 1e-3); }},
      {"--hedge-at", "FleetPolicy::hedge_at", 0, 1, [](S& s, double v) { s.policy.hedge_at = v; }},
  };
  return all;
}

std::string set(Scenario& scenario, const std::string& word, const std::string& text) {
  for (const Option& option : options()) {
    if (word != option.name) continue;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= option.least && value <= option.most)) {
      return word + ": '" + text + "' cannot be used";
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
    text += "  " + std::string(option.name) + std::string(20 - std::string_view(option.name).size(), ' ') +
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
    if (i + 1 == words.size()) return "'" + words[i] + "' needs a value, or is no option";
    if (words[i] == "--scenario") {
      scenario.name = words[++i];
      continue;
    }
    const std::string problem = set(scenario, words[i], words[i + 1]);
    if (!problem.empty()) return problem;
    ++i;
  }
  if (!prepare(scenario)) return "no scenario '" + scenario.name + "'";
  return "";
}

}  // namespace kiln::fleet
