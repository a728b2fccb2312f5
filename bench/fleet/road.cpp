// The road of warm/resolver.cpp and the order of decisions of remote/guarded_store.cpp and remote/fleet_claims.cpp,
// told in events instead of calls.
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

// As the resolver bounds it: twice the recorded cost, at least two seconds; thirty where nothing is recorded; and the
// time that it takes to learn that a holder is gone.
Time wait_for_others(const Scenario& scenario, std::uint32_t key) {
  Time wait = std::chrono::seconds(30);
  if (scenario.cost_known) wait = std::max<Time>(std::chrono::seconds(2), 2 * cost_of(scenario, key));
  return wait + from_seconds(scenario.leases_more * seconds(scenario.policy.lease));
}

void count(Compiles& compiles, Lane::Why why) {
  switch (why) {
    case Lane::Why::Held: ++compiles.held; break;
    case Lane::Why::TakenOver: ++compiles.taken_over; break;
    case Lane::Why::Hedged: ++compiles.hedged; break;
    case Lane::Why::GaveUp: ++compiles.gave_up; break;
    case Lane::Why::NoBudget: ++compiles.no_budget; break;
    case Lane::Why::ServerGone: ++compiles.server_gone; break;
  }
}

}  // namespace

void Simulation::begin(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  Lane& going = of.lanes[lane];
  const Batch& batch = scenario_.batches[of.batch];
  const bool connected = going.connected;
  going = Lane{};
  going.connected = connected;
  if (of.next == batch.keys) return;
  going.key = key_at(scenario_, host, batch, of.next++);
  going.left = scenario_.policy.budget;
  going.give_up = now_ + wait_for_others(scenario_, going.key);
  look(host, lane);
}

bool Simulation::ask(std::uint32_t host, std::uint32_t lane, Op op) {
  Host& of = *hosts_[host];
  Lane& going = of.lanes[lane];
  const FleetPolicy& policy = scenario_.policy;
  // Looking whether a holder is done is part of the wait for him, which has a bound of its own.
  const Time allowed = policy.askable(going.napped ? policy.budget : going.left);
  if (!of.guard(op).closed() || allowed <= Time(0)) {
    ++outcome_.refused;
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
  Lane& going = of.lanes[lane];
  if (!going.fresh && of.guards[0].closed() && of.absent.absent(name_of(going.key), now_)) {
    ++outcome_.spared;
    return missed(host, lane);
  }
  if (!ask(host, lane, Op::ReadHint)) missed(host, lane);
}

void Simulation::missed(std::uint32_t host, std::uint32_t lane) {
  Lane& going = hosts_[host]->lanes[lane];
  if (going.decided) return compile(host, lane);
  acquire(host, lane);
}

void Simulation::acquire(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  Lane& going = of.lanes[lane];
  const Time wait = std::max(going.give_up - now_, Time(0));
  going.wait = std::make_unique<LeaseWait>(scenario_.policy, wait, now_, of.jitter);
  step(host, lane);
}

void Simulation::step(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  Lane& going = of.lanes[lane];
  const LeaseWait::Next next = going.wait->next(now_);
  Op op = Op::Held;
  switch (next.step) {
    case LeaseWait::Step::Take: op = Op::Take; break;
    case LeaseWait::Step::Peek: op = Op::Held; break;
    case LeaseWait::Step::Draw: op = Op::Draw; break;
    case LeaseWait::Step::Nap: going.napped = true; return plan(next.until, Event::What::NapOver, host, lane);
    case LeaseWait::Step::Compile:
      open_claim(host, lane);
      return look_and_compile(host, lane, shelf_.was_taken_over(going.key) ? Lane::Why::TakenOver : Lane::Why::Held);
    case LeaseWait::Step::Hedge: return look_and_compile(host, lane, Lane::Why::Hedged);
    case LeaseWait::Step::Finished:
      going.fresh = true;
      going.napped = false;
      going.wait.reset();
      return look(host, lane);
    case LeaseWait::Step::GiveUp: going.why = Lane::Why::GaveUp; return compile(host, lane);
  }
  // What another compiles could not be had.
  const bool blind = !of.guards[0].closed() && !scenario_.wait_blind;
  if (!blind && ask(host, lane, op)) return;
  going.why = of.guards[1].closed() && !blind ? Lane::Why::NoBudget : Lane::Why::ServerGone;
  compile(host, lane);
}

void Simulation::look_and_compile(std::uint32_t host, std::uint32_t lane, Lane::Why why) {
  Lane& going = hosts_[host]->lanes[lane];
  going.why = why;
  going.fresh = true;
  going.decided = true;
  going.napped = false;
  going.wait.reset();
  look(host, lane);
}

void Simulation::answered(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  Lane& going = of.lanes[lane];
  going.left -= spent(going);
  of.guard(going.op).succeeded();
  if (is_lease(going.op)) {
    table_answered(host, lane);
  } else {
    store_answered(host, lane);
  }
}

void Simulation::table_answered(std::uint32_t host, std::uint32_t lane) {
  Lane& going = hosts_[host]->lanes[lane];
  const FleetPolicy& policy = scenario_.policy;
  if (going.op == Op::Take) {
    going.wait->took(shelf_.take(going.key, going.token, policy.lease, now_), now_);
  } else if (going.op == Op::Held) {
    const Time left = shelf_.left(going.key, now_);
    going.wait->peeked(left > Time(0), now_, left);
  } else {
    going.wait->drew(shelf_.draw(going.key, policy.hedges, wait_for_others(scenario_, going.key), now_), now_);
  }
  step(host, lane);
}

void Simulation::store_answered(std::uint32_t host, std::uint32_t lane) {
  Host& of = *hosts_[host];
  Lane& going = of.lanes[lane];
  const bool there = going.op == Op::ReadHint ? shelf_.hinted(going.key) : shelf_.has(going.key);
  if (!there) {
    of.absent.remember(name_of(going.key), now_);
    return missed(host, lane);
  }
  if (going.op == Op::ReadContent) return found(host, lane);
  of.absent.forget(name_of(going.key));
  if (!ask(host, lane, going.op == Op::ReadHint ? Op::ReadAction : Op::ReadContent)) missed(host, lane);
}

void Simulation::timed_out(std::uint32_t host, std::uint32_t lane) {
  Lane& going = hosts_[host]->lanes[lane];
  going.left -= spent(going);
  ++outcome_.timeouts;
  const bool lease = is_lease(going.op);
  failed(host, going.op);
  if (!lease) return missed(host, lane);
  going.why = Lane::Why::ServerGone;
  compile(host, lane);
}

void Simulation::compile(std::uint32_t host, std::uint32_t lane) {
  Lane& going = hosts_[host]->lanes[lane];
  going.wait.reset();
  Time done = now_ + cost_of(scenario_, going.key);
  if (going.claim != kNone) {
    const HeldClaim& claim = claims_[going.claim];
    if (claim.stalled_until > claim.stalled_from) done += claim.stalled_until - claim.stalled_from;
  }
  count(measuring(going.key) ? outcome_.compiles : outcome_.compiles_before, going.why);
  plan(done, Event::What::Compiled, host, lane);
}

void Simulation::compiled(std::uint32_t host, std::uint32_t lane) {
  Lane& going = hosts_[host]->lanes[lane];
  const std::uint32_t key = going.key;
  const std::uint32_t claim = going.claim;
  send_errand(host, {key, kNone, Op::CheckAction});
  if (claim != kNone) send_errand(host, {key, claim, Op::Release});
  going.claim = kNone;
  if (++hosts_[host]->done == scenario_.batches[hosts_[host]->batch].keys) return warm(host);
  begin(host, lane);
}

void Simulation::found(std::uint32_t host, std::uint32_t lane) {
  Lane& going = hosts_[host]->lanes[lane];
  ++outcome_.hits;
  if (going.claim != kNone) send_errand(host, {going.key, going.claim, Op::Release});
  going.claim = kNone;
  if (++hosts_[host]->done == scenario_.batches[hosts_[host]->batch].keys) return warm(host);
  begin(host, lane);
}

}  // namespace kiln::fleet
