// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/servers.hpp"

#include <string>

namespace kiln::fleet {
namespace {

std::vector<ServiceQueue> rows(const char* name, unsigned count, unsigned workers) {
  std::vector<ServiceQueue> made;
  for (unsigned i = 0; i < std::max(count, 1U); ++i) made.emplace_back(name, workers);
  return made;
}

void count_second(std::vector<std::uint32_t>& by_second, Time now) {
  const auto second = static_cast<std::size_t>(std::chrono::floor<std::chrono::seconds>(now).count());
  if (second >= by_second.size()) by_second.resize(second + 1);
  ++by_second[second];
}

}  // namespace

Servers::Servers(const Scenario& scenario)
    : scenario_(scenario), http_(rows("http server", scenario.costs.http_servers, scenario.costs.http_workers)),
      wires_(rows("http wire", scenario.costs.http_servers, 1)),
      leases_(rows("lease server", scenario.costs.lease_servers, 1)),
      machine_("machine", scenario.costs.machine_cores) {}

std::uint64_t Servers::bytes_of(Op op) const {
  switch (op) {
    case Op::ReadHint:
    case Op::WriteHint: return scenario_.hint_bytes;
    case Op::ReadAction:
    case Op::WriteAction: return scenario_.action_bytes + (scenario_.is_inlined() ? scenario_.content_bytes() : 0);
    case Op::ReadContent:
    case Op::WriteContent: return scenario_.content_bytes();
    default: return 0;
  }
}

Time Servers::work_of(Op op, bool connecting) const {
  const Costs& costs = scenario_.costs;
  if (is_lease(op)) return costs.lease_op + (connecting ? costs.lease_connect : Time(0));
  const bool writes = op == Op::WriteContent || op == Op::WriteAction || op == Op::WriteHint;
  return (writes ? costs.http_write : costs.http_read) + (connecting ? costs.http_connect : Time(0));
}

Servers::Reply Servers::ask(Op op, std::uint32_t host, std::uint32_t key, bool connecting, Time now) {
  const Costs& costs = scenario_.costs;
  const bool lease = is_lease(op);
  ++(lease ? counts_.leases : counts_.http);
  count_second(lease ? leases_by_second_ : http_by_second_, now);
  if (now >= scenario_.outage.from && now < scenario_.outage.until) {
    ++counts_.lost;
    return {now, true};
  }
  const Time arrival = now + costs.round_trip / 2 + (connecting ? costs.round_trip : Time(0));
  Time work = work_of(op, connecting);
  const std::uint64_t bytes = bytes_of(op);
  counts_.bytes += bytes;
  Time done{};
  if (costs.machine_cores > 0) {
    work += lease ? costs.client_lease : costs.client_http;
    done = machine_.serve(arrival, work);
  } else if (lease) {
    done = leases_[key % leases_.size()].serve(arrival, work);
  } else {
    const std::size_t server = host % http_.size();
    done = http_[server].serve(arrival, work);
    if (bytes > 0) {
      // The network queue gets work in the order of arrival at the server, which is almost the order of departure.
      const Time carried = from_seconds(static_cast<double>(bytes) / costs.http_bytes_per_s);
      done = std::max(done, wires_[server].serve(arrival, carried));
    }
  }
  return {done + costs.round_trip / 2, false};
}

Servers::Counts Servers::counts() const {
  Counts counts = counts_;
  const std::size_t maximum = std::max(http_by_second_.size(), leases_by_second_.size());
  for (std::size_t i = 0; i < maximum; ++i) {
    const std::uint32_t http = i < http_by_second_.size() ? http_by_second_[i] : 0;
    const std::uint32_t leases = i < leases_by_second_.size() ? leases_by_second_[i] : 0;
    counts.peak_http = std::max(counts.peak_http, http);
    counts.peak_leases = std::max(counts.peak_leases, leases);
    counts.peak_both = std::max(counts.peak_both, http + leases);
  }
  return counts;
}

std::vector<const ServiceQueue*> Servers::stations() const {
  std::vector<const ServiceQueue*> all;
  for (const auto* group : {&http_, &wires_, &leases_}) {
    for (const ServiceQueue& station : *group) all.push_back(&station);
  }
  all.push_back(&machine_);
  return all;
}

}  // namespace kiln::fleet
