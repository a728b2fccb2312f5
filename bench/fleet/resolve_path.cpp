// SPDX-License-Identifier: Apache-2.0
// The sequence of engine/resolver.cpp and the decisions of remote/guarded_store.cpp and remote/fleet_claims.cpp, as
// events instead of calls.
#include <algorithm>
#include <cstring>
#include <utility>

#include "bench/fleet/simulation.hpp"
#include "cache/claims.hpp"

namespace kiln::fleet {
namespace {

Digest name_of(std::uint32_t key) {
  Digest name;
  const std::uint64_t mixed = (key + 1) * 0x9e3779b97f4a7c15U;
  std::memcpy(name.bytes.data(), &mixed, sizeof mixed);
  return name;
}

// The limit of the resolver: `kFleetWaitFactor` times twice the recorded cost, at least two seconds, or thirty seconds
// without a record; plus the time to detect that a holder is dead.
Time wait_for_others(const Scenario& scenario, std::uint32_t key) {
  Time wait = std::chrono::seconds(30);
  if (scenario.cost_known) wait = std::max<Time>(std::chrono::seconds(2), 2 * cost_of(scenario, key));
  return kFleetWaitFactor * wait + from_seconds(scenario.leases_more * seconds(scenario.policy.lease_ttl));
}

void count(Compiles& compiles, SimulatedThread::Reason reason) {
  switch (reason) {
    case SimulatedThread::Reason::Held: ++compiles.held; break;
    case SimulatedThread::Reason::TakenOver: ++compiles.taken_over; break;
    case SimulatedThread::Reason::Hedged: ++compiles.hedged; break;
    case SimulatedThread::Reason::GaveUp: ++compiles.gave_up; break;
    case SimulatedThread::Reason::NoBudget: ++compiles.no_budget; break;
    case SimulatedThread::Reason::ServerGone: ++compiles.server_gone; break;
    case SimulatedThread::Reason::Skipped: ++compiles.skipped; break;
  }
}

}  // namespace

void Simulation::begin(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  SimulatedThread& going = of.lanes[lane];
  const Batch& batch = scenario_.batches[of.batch];
  going = SimulatedThread{};
  if (of.next == batch.keys) return;
  going.key = key_at(scenario_, host, batch, of.next++);
  going.remaining = scenario_.waited ? scenario_.policy.budget : scenario_.policy.background_budget;
  going.give_up = now_ + wait_for_others(scenario_, going.key);
  admit(host, lane);
}

void Simulation::admit(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  SimulatedThread& going = of.lanes[lane];
  if (!scenario_.waited && probes_first(host)) return of.waiting.push_back(lane);
  switch (scenario_.waited ? WaitAccount::Admission::Ask : of.account.admit(now_)) {
    case WaitAccount::Admission::Ask: return look(host, lane);
    case WaitAccount::Admission::Wait: of.waiting.push_back(lane); return;
    case WaitAccount::Admission::Skip:
      going.reason = SimulatedThread::Reason::Skipped;
      going.refused = true;
      return compile(host, lane);
  }
}

// Returns whether a request opens a connection. A host has one connection to the lease server.
bool Simulation::connects(Host& host, Op op) const {
  if (is_lease(op)) return !std::exchange(host.lease_connected, true);
  const unsigned maximum = scenario_.connections == 0 ? scenario_.lanes : scenario_.connections;
  if (host.connections >= maximum) return false;
  ++host.connections;
  return true;
}

void Simulation::charge(std::uint32_t host, SimulatedThread& going, bool answered) {
  if (!going.slept) going.remaining -= now_ - going.sent;
  if (is_lease(going.op)) return;
  hosts_[host]->account.end_query(now_ - going.sent, answered);
  admit_waiting(host);
}

void Simulation::admit_waiting(std::uint32_t host) {
  std::vector<std::uint32_t> waiting;
  waiting.swap(hosts_[host]->waiting);
  for (const std::uint32_t lane : waiting) admit(host, lane);
}

// Returns whether a thread must wait for a probe before it compiles because of an open circuit.
bool Simulation::probes_first(std::uint32_t host) {
  bool probing = false;
  for (const std::uint32_t server : {0U, 1U}) {
    CircuitBreaker& guard = hosts_[host]->guards[server];
    if (guard.begin_early_probe(now_)) send_probe(host, server);
    probing = probing || guard.is_probing();
  }
  return probing;
}

bool Simulation::ask(std::uint32_t host, std::uint32_t lane, Op op) {
  Host& of = *hosts_[host];
  SimulatedThread& going = of.lanes[lane];
  const FleetPolicy& policy = scenario_.policy;
  // Polling the holder is part of the wait for it, which has its own limit.
  const CircuitBreaker& guard = of.guard(op);
  const Time one = scenario_.waited ? policy.usable_budget(policy.budget) : guard.query_timeout();
  const Time allowed = going.slept ? one : std::min(one, policy.usable_budget(going.remaining));
  if (!usable(guard) || allowed <= Time(0)) {
    ++outcome_.rejected;
    return false;
  }
  if (!is_lease(op)) of.account.begin_query();
  going.op = op;
  going.sent = now_;
  going.timeout = allowed;
  if (op == Op::Take) going.token = ++tokens_;
  Time at{};
  const bool in_time = send(host, going.key, going.token, op, connects(of, op), allowed, at);
  plan(at, in_time ? Event::What::Answered : Event::What::TimedOut, host, lane);
  return true;
}

void Simulation::look(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  SimulatedThread& going = of.lanes[lane];
  if (!going.fresh && usable(of.guards[0]) && of.absent.absent(name_of(going.key), now_)) {
    ++outcome_.spared;
    return missed(host, lane);
  }
  if (ask(host, lane, Op::ReadHint)) return;
  going.refused = !scenario_.waited && going.claim == kNone;
  if (!going.refused) return missed(host, lane);
  going.reason = SimulatedThread::Reason::ServerGone;
  compile(host, lane);
}

void Simulation::missed(std::uint32_t host, std::uint32_t lane) {
  SimulatedThread& going = hosts_[host]->lanes[lane];
  if (going.decided) return compile(host, lane);
  acquire(host, lane);
}

void Simulation::acquire(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  SimulatedThread& going = of.lanes[lane];
  const Time wait = std::max(going.give_up - now_, Time(0));
  going.wait = std::make_unique<LeaseWaiter>(scenario_.policy, wait, now_, of.jitter);
  step(host, lane);
}

void Simulation::step(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  SimulatedThread& going = of.lanes[lane];
  const LeaseWaiter::Next next = going.wait->next(now_);
  Op op = Op::Held;
  switch (next.step) {
    case LeaseWaiter::Step::Acquire: op = Op::Take; break;
    case LeaseWaiter::Step::Check: op = Op::Held; break;
    case LeaseWaiter::Step::TryHedge: op = Op::Draw; break;
    case LeaseWaiter::Step::Sleep: going.slept = true; return plan(next.until, Event::What::SleepOver, host, lane);
    case LeaseWaiter::Step::Compile:
      open_claim(host, lane);
      return look_and_compile(
          host, lane,
          pch_cache_.was_taken_over(going.key) ? SimulatedThread::Reason::TakenOver : SimulatedThread::Reason::Held);
    case LeaseWaiter::Step::Hedge: return look_and_compile(host, lane, SimulatedThread::Reason::Hedged);
    case LeaseWaiter::Step::ReleasedByOther:
      going.fresh = true;
      going.slept = false;
      going.wait.reset();
      return look(host, lane);
    case LeaseWaiter::Step::TimedOut:
      going.reason = SimulatedThread::Reason::GaveUp;
      going.refused = of.guards[0].is_slow();
      return compile(host, lane);
  }
  if (of.guards[0].is_slow() && !scenario_.waited) going.wait->on_slow_store();
  // The results of other hosts would not be reachable.
  const bool blind = !usable(of.guards[0]) && !scenario_.wait_blind;
  if (!blind && ask(host, lane, op)) return;
  going.reason =
      usable(of.guards[1]) && !blind ? SimulatedThread::Reason::NoBudget : SimulatedThread::Reason::ServerGone;
  compile(host, lane);
}

void Simulation::look_and_compile(std::uint32_t host, std::uint32_t lane, SimulatedThread::Reason reason) {
  SimulatedThread& going = hosts_[host]->lanes[lane];
  going.reason = reason;
  going.fresh = true;
  going.decided = true;
  going.slept = false;
  going.wait.reset();
  look(host, lane);
}

void Simulation::answered(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  SimulatedThread& going = of.lanes[lane];
  charge(host, going, true);
  of.guard(going.op).succeeded(now_ - going.sent);
  if (is_lease(going.op)) {
    table_answered(host, lane);
  } else {
    store_answered(host, lane);
  }
}

void Simulation::table_answered(std::uint32_t host, std::uint32_t lane) {
  SimulatedThread& going = hosts_[host]->lanes[lane];
  const FleetPolicy& policy = scenario_.policy;
  if (going.op == Op::Take) {
    going.wait->on_acquire(pch_cache_.take(going.key, going.token, policy.lease_ttl, now_), now_);
  } else if (going.op == Op::Held) {
    const Time remaining = pch_cache_.remaining(going.key, now_);
    going.wait->on_check(remaining > Time(0), now_, remaining);
  } else {
    going.wait->on_hedge(pch_cache_.draw(going.key, policy.max_hedges, wait_for_others(scenario_, going.key), now_),
                         now_);
  }
  step(host, lane);
}

void Simulation::store_answered(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  SimulatedThread& going = of.lanes[lane];
  const bool there = going.op == Op::ReadHint ? pch_cache_.hinted(going.key) : pch_cache_.has(going.key);
  if (!there) {
    of.absent.remember(name_of(going.key), now_);
    return missed(host, lane);
  }
  if (going.op == Op::ReadContent || (going.op == Op::ReadAction && scenario_.is_inlined())) return found(host, lane);
  of.absent.forget(name_of(going.key));
  if (!ask(host, lane, going.op == Op::ReadHint ? Op::ReadAction : Op::ReadContent)) missed(host, lane);
}

void Simulation::timed_out(std::uint32_t host, std::uint32_t lane) {
  SimulatedThread& going = hosts_[host]->lanes[lane];
  charge(host, going, false);
  ++outcome_.timeouts;
  const bool lease = is_lease(going.op);
  failed(host, going.op, going.timeout);
  if (!lease && scenario_.waited) return missed(host, lane);
  if (!lease) {
    // One more attempt with the timeout of a slow server. After that, this host does not wait for others either.
    if (!std::exchange(going.retried, true) && ask(host, lane, going.op)) return;
    going.refused = going.claim == kNone;
    going.reason = going.refused ? SimulatedThread::Reason::ServerGone : SimulatedThread::Reason::Held;
    return compile(host, lane);
  }
  if (usable(hosts_[host]->guards[1]) && going.wait->on_failure(now_)) return step(host, lane);
  going.reason = SimulatedThread::Reason::ServerGone;
  compile(host, lane);
}

void Simulation::compile(std::uint32_t host, std::uint32_t lane) {
  SimulatedThread& going = hosts_[host]->lanes[lane];
  going.wait.reset();
  Time done = now_ + cost_of(scenario_, going.key);
  if (going.claim != kNone) {
    const HeldClaim& claim = claims_[going.claim];
    if (claim.stalled_until > claim.stalled_from) done += claim.stalled_until - claim.stalled_from;
  }
  count(measuring(going.key) ? outcome_.compiles : outcome_.compiles_before, going.reason);
  plan(done, Event::What::Compiled, host, lane);
}

void Simulation::compiled(std::uint32_t host, std::uint32_t lane) {
  SimulatedThread& going = hosts_[host]->lanes[lane];
  const std::uint32_t key = going.key;
  const std::uint32_t claim = going.claim;
  // A host that does not ask an overloaded server does not upload either: a holder does.
  if (!going.refused) send_task(host, {key, kNone, Op::CheckAction});
  if (claim != kNone) send_task(host, {key, claim, Op::Release});
  going.claim = kNone;
  if (++hosts_[host]->done == scenario_.batches[hosts_[host]->batch].keys) return warm(host);
  begin(host, lane);
}

void Simulation::found(std::uint32_t host, std::uint32_t lane) {
  SimulatedThread& going = hosts_[host]->lanes[lane];
  ++outcome_.hits;
  hosts_[host]->account.saved(cost_of(scenario_, going.key));
  if (going.claim != kNone) send_task(host, {going.key, going.claim, Op::Release});
  going.claim = kNone;
  if (++hosts_[host]->done == scenario_.batches[hosts_[host]->batch].keys) return warm(host);
  begin(host, lane);
}

}  // namespace kiln::fleet
