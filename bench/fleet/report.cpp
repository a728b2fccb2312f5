// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/report.hpp"

#include <cstdarg>
#include <cstdio>

namespace kiln::fleet {
namespace {

[[gnu::format(printf, 2, 3)]] void add(std::string& text, const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  (void)std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

unsigned long long number(std::uint64_t value) { return value; }

void add_compiles(std::string& text, const char* name, const Compiles& compiles) {
  add(text,
      ",\"%s\":{\"all\":%llu,\"held\":%llu,\"taken_over\":%llu,\"hedged\":%llu,\"gave_up\":%llu,\"no_budget\":%llu,"
      "\"server_gone\":%llu,\"skipped\":%llu}",
      name, number(compiles.all()), number(compiles.held), number(compiles.taken_over), number(compiles.hedged),
      number(compiles.gave_up), number(compiles.no_budget), number(compiles.server_gone), number(compiles.skipped));
}

std::string in_units(double bytes) {
  std::string text;
  if (bytes >= 1e12) {
    add(text, "%.2f TB", bytes / 1e12);
  } else if (bytes >= 1e9) {
    add(text, "%.1f GB", bytes / 1e9);
  } else {
    add(text, "%.1f MB", bytes / 1e6);
  }
  return text;
}

}  // namespace

std::string json_of(const Scenario& scenario, const Outcome& outcome, const std::vector<Baseline>& baselines) {
  std::string text;
  add(text, "{\"scenario\":\"%s\",\"hosts\":%u,\"keys\":%u,\"seed\":%llu", scenario.name.c_str(), scenario.hosts,
      scenario.keys, number(scenario.seed));
  add(text, ",\"http_servers\":%u,\"lease_servers\":%u,\"window_s\":%g,\"lanes\":%u,\"shuffled\":%s,\"cost_known\":%s",
      scenario.costs.http_servers, scenario.costs.lease_servers, scenario.window, scenario.lanes,
      scenario.shuffled ? "true" : "false", scenario.cost_known ? "true" : "false");
  add(text, ",\"compiles_per_key\":%.4f,\"unique_keys\":%llu", outcome.compiles_per_key(), number(outcome.unique_keys));
  add_compiles(text, "compiles", outcome.compiles);
  add_compiles(text, "compiles_before", outcome.compiles_before);
  add(text, ",\"hedges\":%llu,\"takeovers\":%llu,\"stalled_holders\":%llu", number(outcome.compiles.hedged),
      number(outcome.compiles.taken_over), number(outcome.stalled));
  add(text, ",\"p50_warm_s\":%.3f,\"p99_warm_s\":%.3f,\"p99_host_s\":%.3f", outcome.p50_warm_s, outcome.p99_warm_s,
      outcome.p99_host_s);
  const Servers::Counts& servers = outcome.servers;
  add(text, ",\"peak_remote_rps\":%u,\"peak_http_rps\":%u,\"lease_ops_per_s\":%u,\"http_requests\":%llu",
      servers.peak_both, servers.peak_http, servers.peak_leases, number(servers.http));
  add(text, ",\"lease_ops\":%llu,\"bytes\":%llu,\"hits\":%llu,\"refused\":%llu,\"spared\":%llu,\"timeouts\":%llu",
      number(servers.leases), number(servers.bytes), number(outcome.hits), number(outcome.rejected),
      number(outcome.spared), number(outcome.timeouts));
  add(text,
      ",\"breaker_slow\":%llu,\"breaker_openings\":%llu,\"lost_uploads\":%llu,\"first_bottleneck\":\"%s\",\"events\":%"
      "llu,\"baselines\":[",
      number(outcome.slowdowns), number(outcome.openings), number(outcome.lost_uploads),
      outcome.first_bottleneck.c_str(), number(outcome.events));
  for (std::size_t i = 0; i < baselines.size(); ++i) {
    const Baseline& baseline = baselines[i];
    add(text, "%s{\"name\":\"%s\",\"compiles_per_key\":%.4f,\"p99_warm_s\":%.3f,\"p99_host_s\":%.3f", i == 0 ? "" : ",",
        baseline.name.c_str(), baseline.compiles_per_key, baseline.p99_warm_s, baseline.p99_host_s);
    add(text, ",\"peak_remote_rps\":%.0f,\"bytes\":%.0f}", baseline.peak_rps, baseline.bytes);
  }
  return text + "]}\n";
}

std::string table_of(const Scenario& scenario, const Outcome& outcome, const std::vector<Baseline>& baselines) {
  std::string text;
  add(text, "%s: %u hosts, %u keys, within %g s, %u http and %u lease server(s), seed %llu\n", scenario.name.c_str(),
      scenario.hosts, scenario.keys, scenario.window, scenario.costs.http_servers, scenario.costs.lease_servers,
      number(scenario.seed));
  add(text, "%-26s %13s %10s %10s %11s %10s\n", "", "compiles/key", "99 % ready", "one host", "requests/s", "bytes");
  add(text, "%-26s %13.4f %8.1f s %8.1f s %11u %10s\n", "kiln", outcome.compiles_per_key(), outcome.p99_warm_s,
      outcome.p99_host_s, outcome.servers.peak_both, in_units(static_cast<double>(outcome.servers.bytes)).c_str());
  for (const Baseline& baseline : baselines) {
    add(text, "%-26s %13.4f %8.1f s %8.1f s %11.0f %10s\n", baseline.name.c_str(), baseline.compiles_per_key,
        baseline.p99_warm_s, baseline.p99_host_s, baseline.peak_rps, in_units(baseline.bytes).c_str());
  }
  const Compiles& compiles = outcome.compiles;
  add(text,
      "compiles: %llu by holders, %llu after a takeover, %llu hedges, %llu timed out, %llu out of budget, %llu with an "
      "open circuit, %llu without asking; %llu holders stalled\n",
      number(compiles.held), number(compiles.taken_over), number(compiles.hedged), number(compiles.gave_up),
      number(compiles.no_budget), number(compiles.server_gone), number(compiles.skipped), number(outcome.stalled));
  add(text, "peak %u http requests/s and %u lease operations/s; %llu timeouts, %llu circuits opened, %llu not sent\n",
      outcome.servers.peak_http, outcome.servers.peak_leases, number(outcome.timeouts), number(outcome.openings),
      number(outcome.rejected));
  add(text, "first bottleneck: %s\n", outcome.first_bottleneck.c_str());
  return text;
}

}  // namespace kiln::fleet
