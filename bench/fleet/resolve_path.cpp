// SPDX-License-Identifier: Apache-2.0
// The sequence of engine/resolver.cpp and the decisions of remote/guarded_store.cpp and remote/fleet_claims.cpp, as
// events instead of calls.
#include <algorithm>
#include <cstring>

#include "bench/fleet/simulation.hpp"

namespace kiln::fleet {
namespace {

Digest name_of(std::uint32_t key) {
  Digest name;
  const std::uint64_t mixed = (key + 1) * 0x9e3779b97f4a7c15U;
  std::memcpy(name.bytes.data(), &mixed, sizeof mixed);
  return name;
}

// The limit of the resolver: twice the recorded cost, at least two seconds; thirty seconds without a record; plus the
// time to detect that a holder is dead.
Time wait_for_others(const Scenario& scenario, std::uint32_t key) {
  Time wait = std::chrono::seconds(30);
  if (scenario.cost_known) wait = std::max<Time>(std::chrono::seconds(2), 2 * cost_of(scenario, key));
  return wait + from_seconds(scenario.leases_more * seconds(scenario.policy.lease_ttl));
}

void count(Compiles& compiles, SimulatedThread::Reason reason) {
  switch (reason) {
    case SimulatedThread::Reason::Held: ++compiles.held; break;
    case SimulatedThread::Reason::TakenOver: ++compiles.taken_over; break;
    case SimulatedThread::Reason::Hedged: ++compiles.hedged; break;
    case SimulatedThread::Reason::GaveUp: ++compiles.gave_up; break;
    case SimulatedThread::Reason::NoBudget: ++compiles.no_budget; break;
    case SimulatedThread::Reason::ServerGone: ++compiles.server_gone; break;
  }
}

}  // namespace

void Simulation::begin(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  SimulatedThread& going = of.lanes[lane];
  const Batch& batch = scenario_.batches[of.batch];
  const bool connected = going.connected;
  going = SimulatedThread{};
  going.connected = connected;
  if (of.next == batch.keys) return;
  going.key = key_at(scenario_, host, batch, of.next++);
  going.remaining = scenario_.policy.budget;
  going.give_up = now_ + wait_for_others(scenario_, going.key);
  look(host, lane);
}

bool Simulation::ask(std::uint32_t host, std::uint32_t lane, Op op) {
  Host& of = *hosts_[host];
  SimulatedThread& going = of.lanes[lane];
  const FleetPolicy& policy = scenario_.policy;
  // Polling the holder is part of the wait for it, which has its own limit.
  const Time allowed = policy.usable_budget(going.slept ? policy.budget : going.remaining);
  if (!of.guard(op).is_closed() || allowed <= Time(0)) {
    ++outcome_.rejected;
    return false;
  }
  bool& connected = is_lease(op) ? of.lease_connected : going.connected;
  going.op = op;
  going.sent = now_;
  if (op == Op::Take) going.token = ++tokens_;
  Time at{};
  const bool in_time = send(host, going.key, going.token, op, !connected, allowed, at);
  connected = true;
  plan(at, in_time ? Event::What::Answered : Event::What::TimedOut, host, lane);
  return true;
}

void Simulation::look(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  SimulatedThread& going = of.lanes[lane];
  if (!going.fresh && of.guards[0].is_closed() && of.absent.absent(name_of(going.key), now_)) {
    ++outcome_.spared;
    return missed(host, lane);
  }
  if (!ask(host, lane, Op::ReadHint)) missed(host, lane);
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
    case LeaseWaiter::Step::TimedOut: going.reason = SimulatedThread::Reason::GaveUp; return compile(host, lane);
  }
  // The results of other hosts would not be reachable.
  const bool blind = !of.guards[0].is_closed() && !scenario_.wait_blind;
  if (!blind && ask(host, lane, op)) return;
  going.reason =
      of.guards[1].is_closed() && !blind ? SimulatedThread::Reason::NoBudget : SimulatedThread::Reason::ServerGone;
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
  going.remaining -= spent(going);
  of.guard(going.op).succeeded();
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
  if (going.op == Op::ReadContent) return found(host, lane);
  of.absent.forget(name_of(going.key));
  if (!ask(host, lane, going.op == Op::ReadHint ? Op::ReadAction : Op::ReadContent)) missed(host, lane);
}

void Simulation::timed_out(std::uint32_t host, std::uint32_t lane) {
  SimulatedThread& going = hosts_[host]->lanes[lane];
  going.remaining -= spent(going);
  ++outcome_.timeouts;
  const bool lease = is_lease(going.op);
  failed(host, going.op);
  if (!lease) return missed(host, lane);
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
  send_task(host, {key, kNone, Op::CheckAction});
  if (claim != kNone) send_task(host, {key, claim, Op::Release});
  going.claim = kNone;
  if (++hosts_[host]->done == scenario_.batches[hosts_[host]->batch].keys) return warm(host);
  begin(host, lane);
}

void Simulation::found(std::uint32_t host, std::uint32_t lane) {
  SimulatedThread& going = hosts_[host]->lanes[lane];
  ++outcome_.hits;
  if (going.claim != kNone) send_task(host, {going.key, going.claim, Op::Release});
  going.claim = kNone;
  if (++hosts_[host]->done == scenario_.batches[hosts_[host]->batch].keys) return warm(host);
  begin(host, lane);
}

}  // namespace kiln::fleet
