// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "bench/fleet/event_queue.hpp"
#include "bench/fleet/host.hpp"
#include "bench/fleet/outcome.hpp"
#include "bench/fleet/scenario.hpp"
#include "bench/fleet/server_state.hpp"
#include "bench/fleet/servers.hpp"

namespace kiln::fleet {

/// A simulation of the hosts of a scenario. kiln's own code (LeaseWaiter, Breaker, NegativeCache with the values of
/// FleetPolicy) makes the decisions of a host; time, responses and compile times are simulated. The call sequence is
/// that of engine/resolver.cpp. Deterministic: the same seed gives the same outcome. Not thread-safe.
class Simulation {
 public:
  explicit Simulation(const Scenario& scenario);
  Outcome run();

 private:
  // The sequence of a thread (resolve_path.cpp).
  void begin(std::uint32_t host, std::uint32_t lane);
  void admit(std::uint32_t host, std::uint32_t lane);
  void admit_waiting(std::uint32_t host);
  bool probes_first(std::uint32_t host);
  void look(std::uint32_t host, std::uint32_t lane);
  void missed(std::uint32_t host, std::uint32_t lane);
  void acquire(std::uint32_t host, std::uint32_t lane);
  void step(std::uint32_t host, std::uint32_t lane);
  void look_and_compile(std::uint32_t host, std::uint32_t lane, SimulatedThread::Reason reason);
  void compile(std::uint32_t host, std::uint32_t lane);
  void compiled(std::uint32_t host, std::uint32_t lane);
  void found(std::uint32_t host, std::uint32_t lane);
  bool ask(std::uint32_t host, std::uint32_t lane, Op op);
  bool usable(const CircuitBreaker& guard) const { return scenario_.waited ? guard.is_closed() : guard.is_usable(); }
  bool connects(Host& host, Op op) const;
  void answered(std::uint32_t host, std::uint32_t lane);
  void table_answered(std::uint32_t host, std::uint32_t lane);
  void store_answered(std::uint32_t host, std::uint32_t lane);
  void timed_out(std::uint32_t host, std::uint32_t lane);
  /// Charges the time of the last request to the budget and the account. Requests during a wait for a holder are not
  /// charged to the budget.
  void charge(std::uint32_t host, SimulatedThread& going, bool answered);

  // Background work (background.cpp).
  void open_claim(std::uint32_t host, std::uint32_t lane);
  void renew(std::uint32_t claim);
  void send_task(std::uint32_t host, const BackgroundTask& task);
  void run_task(std::uint32_t host);
  void task_answered(std::uint32_t host, bool in_time);
  void next_task(std::uint32_t host);
  void effect(const Event& event);
  void failed(std::uint32_t host, Op op, Time timeout);
  void probe(std::uint32_t host, std::uint32_t server);
  void send_probe(std::uint32_t host, std::uint32_t server);
  void probed(std::uint32_t host, std::uint32_t server, bool answered);
  /// Sends a request. Returns true if the response arrives within the limit, at `at`.
  bool send(std::uint32_t host, std::uint32_t key, std::uint32_t token, Op op, bool connecting, Time timeout, Time& at);

  // Event loop (simulation.cpp).
  void start(std::uint32_t host, std::uint32_t batch);
  void warm(std::uint32_t host);
  void happen(const Event& event);
  Outcome summary();
  void plan(Time at, Event::What what, std::uint32_t host, std::uint32_t number);
  bool measuring(std::uint32_t key) const { return key >= scenario_.measured().first_key; }

  const Scenario scenario_;
  EventQueue queue_;
  Servers servers_;
  ServerState pch_cache_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<HeldClaim> claims_;
  std::vector<std::uint32_t> free_claims_;
  std::vector<double> warm_at_;
  std::vector<double> waited_;
  Outcome outcome_;
  Time now_{};
  std::uint32_t tokens_ = 0;
  std::uint64_t holders_ = 0;
};

Outcome simulate(Scenario scenario);
/// Returns the baselines: every host compiles; every host pulls a directory image.
std::vector<Baseline> baselines(const Scenario& scenario);

}  // namespace kiln::fleet
