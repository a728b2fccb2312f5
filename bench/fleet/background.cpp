// SPDX-License-Identifier: Apache-2.0
// Background work of hosts: renewing claims, uploading and releasing them, and probing servers with an open circuit.
#include <algorithm>

#include "bench/fleet/simulation.hpp"

namespace kiln::fleet {
namespace {

// The sequence of requests with which a live signer publishes an entry and its dependency set: remote/remote_store.cpp.
Op next_of(Op op) {
  switch (op) {
    case Op::CheckAction: return Op::WriteContent;
    case Op::WriteContent: return Op::WriteAction;
    case Op::WriteAction: return Op::CheckHint;
    default: return Op::WriteHint;
  }
}

}  // namespace

bool Simulation::send(std::uint32_t host, std::uint32_t key, std::uint32_t token, Op op, bool connecting, Time timeout,
                      Time& at) {
  const Servers::Reply reply = servers_.ask(op, host, key, connecting, now_);
  if (!reply.lost && reply.at - now_ <= timeout) {
    at = reply.at;
    return true;
  }
  at = now_ + timeout;
  const bool writes = op == Op::Take || op == Op::Release || op == Op::WriteAction || op == Op::WriteHint;
  if (!reply.lost && writes) {
    // The server executes it anyway when the request arrives.
    Event late;
    late.at = reply.at;
    late.host = host;
    late.number = key;
    late.token = token;
    late.what = Event::What::Effect;
    late.op = static_cast<std::uint8_t>(op);
    queue_.plan(late);
  }
  return false;
}

void Simulation::effect(const Event& event) {
  const std::uint32_t key = event.number;
  switch (static_cast<Op>(event.op)) {
    case Op::Take: (void)pch_cache_.take(key, event.token, scenario_.policy.lease_ttl, now_); break;
    case Op::Renew: (void)pch_cache_.renew(key, event.token, scenario_.policy.lease_ttl, now_); break;
    case Op::Release: pch_cache_.release(key, event.token); break;
    case Op::WriteAction: pch_cache_.put_entry(key); break;
    case Op::WriteHint: pch_cache_.put_hint(key); break;
    default: break;
  }
}

void Simulation::open_claim(std::uint32_t host, std::uint32_t lane) {
  SimulatedThread& going = hosts_[host]->lanes[lane];
  if (free_claims_.empty()) {
    free_claims_.push_back(static_cast<std::uint32_t>(claims_.size()));
    claims_.emplace_back();
  }
  going.claim = free_claims_.back();
  free_claims_.pop_back();
  HeldClaim& claim = claims_[going.claim];
  claim = {host, going.key, going.token, Time(-1), Time(-1), true};
  plan(now_ + scenario_.policy.lease_ttl / 3, Event::What::Renew, host, going.claim);
  ++holders_;
  // Every n-th holder stalls, not a random one, so that the share is exact even for few holders. It stops at a random
  // point of its compile, for half a lease to four leases.
  const double stalls = scenario_.stalled;
  if (stalls <= 0 ||
      (holders_ + static_cast<std::uint64_t>(0.5 / stalls)) % static_cast<std::uint64_t>(1 / stalls) != 0) {
    return;
  }
  Jitter drawn(scenario_.seed ^ (holders_ << 20U));
  claim.stalled_from = now_ + from_seconds(seconds(cost_of(scenario_, going.key)) * drawn.unit());
  claim.stalled_until =
      claim.stalled_from + from_seconds(seconds(scenario_.policy.lease_ttl) * (0.5 + 3.5 * drawn.unit()));
  ++outcome_.stalled;
}

void Simulation::renew(std::uint32_t number) {
  const HeldClaim& claim = claims_[number];
  if (!claim.open) {
    free_claims_.push_back(number);  // only now, because no event is scheduled for it any longer
    return;
  }
  if (now_ >= claim.stalled_from && now_ < claim.stalled_until) {
    return plan(claim.stalled_until, Event::What::Renew, claim.host, number);
  }
  if (hosts_[claim.host]->guards[1].is_usable()) {
    const Servers::Reply reply = servers_.ask(Op::Renew, claim.host, claim.key, false, now_);
    Event renewed;
    renewed.at = reply.at;
    renewed.host = claim.host;
    renewed.number = claim.key;
    renewed.token = claim.token;
    renewed.what = Event::What::Effect;
    renewed.op = static_cast<std::uint8_t>(Op::Renew);
    if (!reply.lost) queue_.plan(renewed);
  }
  plan(now_ + scenario_.policy.lease_ttl / 3, Event::What::Renew, claim.host, number);
}

void Simulation::send_task(std::uint32_t host, const BackgroundTask& task) {
  Host& of = *hosts_[host];
  of.tasks.push_back(task);
  if (of.tasks.size() == 1) run_task(host);
}

void Simulation::run_task(std::uint32_t host) {
  Host& of = *hosts_[host];
  const BackgroundTask task = of.tasks.front();
  const bool release = task.claim != kNone;
  const Time timeout = release ? of.guard(task.op).query_timeout() : scenario_.policy.upload_timeout;
  if (!of.guard(task.op).answers()) {
    if (!release) ++outcome_.lost_uploads;
    return next_task(host);
  }
  Time at{};
  of.task_sent = now_;
  const std::uint32_t token = release ? claims_[task.claim].token : 0;
  const bool in_time = send(host, task.key, token, task.op, false, timeout, at);
  plan(at, in_time ? Event::What::UploadAnswered : Event::What::UploadTimedOut, host, 0);
}

void Simulation::task_answered(std::uint32_t host, bool in_time) {
  Host& of = *hosts_[host];
  BackgroundTask& task = of.tasks.front();
  if (!in_time) {
    ++outcome_.timeouts;
    failed(host, task.op, scenario_.policy.upload_timeout);
    if (task.claim == kNone) ++outcome_.lost_uploads;
    return next_task(host);
  }
  of.guard(task.op).succeeded(now_ - of.task_sent);
  if (task.claim != kNone) {
    pch_cache_.release(task.key, claims_[task.claim].token);
    return next_task(host);
  }
  if (task.op == Op::WriteAction) pch_cache_.put_entry(task.key);
  if (task.op == Op::WriteHint) {
    pch_cache_.put_hint(task.key);
    return next_task(host);
  }
  task.op = next_of(task.op);
  run_task(host);
}

void Simulation::next_task(std::uint32_t host) {
  Host& of = *hosts_[host];
  if (of.tasks.front().claim != kNone) claims_[of.tasks.front().claim].open = false;
  of.tasks.pop_front();
  if (!of.tasks.empty()) return run_task(host);
  const bool last = of.batch + 1 == scenario_.batches.size();
  if (last && of.done == scenario_.measured().keys) hosts_[host].reset();
}

void Simulation::failed(std::uint32_t host, Op op, Time timeout) {
  CircuitBreaker& guard = hosts_[host]->guard(op);
  const CircuitBreaker::Change change = guard.timed_out(now_, timeout);
  if (change == CircuitBreaker::Change::None) return;
  ++(change == CircuitBreaker::Change::Opened ? outcome_.openings : outcome_.slowdowns);
  plan(guard.probe_at(), Event::What::ProbeDue, host, is_lease(op) ? 1 : 0);
}

void Simulation::probe(std::uint32_t host, std::uint32_t server) {
  if (hosts_[host]->guards[server].begin_probe(now_)) send_probe(host, server);
}

void Simulation::send_probe(std::uint32_t host, std::uint32_t server) {
  Time at{};
  const Op op = server == 0 ? Op::ProbeHttp : Op::ProbeLeases;
  const bool in_time = send(host, 0, 0, op, false, scenario_.policy.probe_timeout(), at);
  hosts_[host]->probe_sent[server] = now_;
  plan(at, in_time ? Event::What::ProbeAnswered : Event::What::ProbeTimedOut, host, server);
}

void Simulation::probed(std::uint32_t host, std::uint32_t server, bool answered) {
  CircuitBreaker& guard = hosts_[host]->guards[server];
  const bool was_open = !guard.is_usable();
  const bool back = guard.probed(answered, now_, now_ - hosts_[host]->probe_sent[server]);
  if (!guard.is_closed()) plan(guard.probe_at(), Event::What::ProbeDue, host, server);
  if (back && was_open && server == 0) hosts_[host]->account.on_recovered();
  admit_waiting(host);
}

}  // namespace kiln::fleet
