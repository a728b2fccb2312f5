// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/simulation.hpp"

#include <algorithm>
#include <cstdio>

namespace kiln::fleet {
namespace {

// Returns the queue that was first to cause a long wait, or the one that came closest.
std::string bottleneck(const Servers& servers) {
  const ServiceQueue* first = nullptr;
  const ServiceQueue* busiest = nullptr;
  for (const ServiceQueue* station : servers.stations()) {
    if (busiest == nullptr || station->busiest() > busiest->busiest()) busiest = station;
    if (station->first_long() < Time(0)) continue;
    if (first == nullptr || station->first_long() < first->first_long()) first = station;
  }
  char text[160];
  if (first != nullptr) {
    std::snprintf(text, sizeof text, "%s, from %.1f s: %.0f %% load in its busiest second, waits up to %.2f s",
                  first->name().c_str(), seconds(first->first_long()), 100 * first->busiest(),
                  seconds(first->longest_wait()));
  } else {
    std::snprintf(text, sizeof text, "none; closest: %s, %.0f %% load in its busiest second", busiest->name().c_str(),
                  100 * busiest->busiest());
  }
  return text;
}

}  // namespace

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto place = std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place), values.end());
  return values[place];
}

Simulation::Simulation(const Scenario& scenario)
    : scenario_(scenario), servers_(scenario_), pch_cache_(scenario_.all_keys()), hosts_(scenario_.hosts) {
  for (std::uint32_t key = 0; key < scenario_.all_keys(); ++key) {
    if (!published_before(scenario_, key)) continue;
    pch_cache_.put_entry(key);
    pch_cache_.put_hint(key);
  }
}

Outcome Simulation::run() {
  for (std::uint32_t host = 0; host < scenario_.hosts; ++host) {
    plan(start_of(scenario_, host, scenario_.batches.front()), Event::What::Start, host, 0);
  }
  while (!queue_.empty()) {
    const Event event = queue_.next();
    now_ = event.at;
    happen(event);
  }
  return summary();
}

void Simulation::plan(Time at, Event::What what, std::uint32_t host, std::uint32_t number) {
  Event event;
  event.at = at;
  event.host = host;
  event.number = number;
  event.what = what;
  queue_.plan(event);
}

void Simulation::happen(const Event& event) {
  using What = Event::What;
  // A host that is ready and has no work left is destroyed; its remaining events are ignored.
  if (event.what != What::Start && event.what != What::Effect && event.what != What::Renew &&
      hosts_[event.host] == nullptr) {
    return;
  }
  switch (event.what) {
    case What::Start: start(event.host, event.number); break;
    case What::Answered: answered(event.host, event.number); break;
    case What::TimedOut: timed_out(event.host, event.number); break;
    case What::SleepOver: step(event.host, event.number); break;
    case What::Compiled: compiled(event.host, event.number); break;
    case What::Renew: renew(event.number); break;
    case What::Effect: effect(event); break;
    case What::UploadAnswered: task_answered(event.host, true); break;
    case What::UploadTimedOut: task_answered(event.host, false); break;
    case What::ProbeDue: probe(event.host, event.number); break;
    case What::ProbeAnswered: probed(event.host, event.number, true); break;
    case What::ProbeTimedOut: probed(event.host, event.number, false); break;
  }
}

void Simulation::start(std::uint32_t host, std::uint32_t batch) {
  if (hosts_[host] == nullptr) hosts_[host] = std::make_unique<Host>(scenario_, host);
  Host& starting = *hosts_[host];
  starting.batch = batch;
  starting.next = 0;
  starting.done = 0;
  starting.started = now_;
  if (batch + 1 < scenario_.batches.size()) {
    plan(start_of(scenario_, host, scenario_.batches[batch + 1]), Event::What::Start, host, batch + 1);
  }
  for (std::uint32_t lane = 0; lane < scenario_.lanes; ++lane) begin(host, lane);
}

void Simulation::warm(std::uint32_t host) {
  Host& ready = *hosts_[host];
  if (ready.batch + 1 < scenario_.batches.size()) return;
  warm_at_.push_back(seconds(now_ - scenario_.measured().from));
  waited_.push_back(seconds(now_ - ready.started));
  if (ready.tasks.empty()) hosts_[host].reset();
}

Outcome Simulation::summary() {
  const Batch& batch = scenario_.measured();
  for (std::uint32_t key = batch.first_key; key < batch.first_key + batch.keys; ++key) {
    if (!published_before(scenario_, key)) ++outcome_.unique_keys;
  }
  outcome_.servers = servers_.counts();
  outcome_.p50_warm_s = percentile(warm_at_, 0.5);
  outcome_.p99_warm_s = percentile(warm_at_, 0.99);
  outcome_.p99_host_s = percentile(waited_, 0.99);
  outcome_.first_bottleneck = bottleneck(servers_);
  outcome_.events = queue_.planned();
  return outcome_;
}

Outcome simulate(Scenario scenario) {
  if (scenario.batches.empty()) prepare(scenario);
  return Simulation(scenario).run();
}

}  // namespace kiln::fleet
