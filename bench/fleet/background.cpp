// What hosts do besides their roads: renewing claims, uploading and letting go, probing servers that they gave up.
#include <algorithm>

#include "bench/fleet/simulation.hpp"

namespace kiln::fleet {
namespace {

// An entry, then its closure, as a live signer publishes them: remote/remote_store.cpp.
Op next_of(Op op) {
  switch (op) {
    case Op::CheckAction: return Op::WriteContent;
    case Op::WriteContent: return Op::WriteAction;
    case Op::WriteAction: return Op::CheckHint;
    default: return Op::WriteHint;
  }
}

}  // namespace

bool Simulation::send(std::uint32_t host, std::uint32_t key, std::uint32_t token, Op op, bool connecting, Time limit,
                      Time& at) {
  const Servers::Reply reply = servers_.ask(op, host, key, connecting, now_);
  if (!reply.lost && reply.at - now_ <= limit) {
    at = reply.at;
    return true;
  }
  at = now_ + limit;
  const bool writes = op == Op::Take || op == Op::Release || op == Op::WriteAction || op == Op::WriteHint;
  if (!reply.lost && writes) {
    // The server does it all the same, when it gets there.
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
    case Op::Take: (void)shelf_.take(key, event.token, scenario_.policy.lease, now_); break;
    case Op::Renew: (void)shelf_.renew(key, event.token, scenario_.policy.lease, now_); break;
    case Op::Release: shelf_.release(key, event.token); break;
    case Op::WriteAction: shelf_.put_entry(key); break;
    case Op::WriteHint: shelf_.put_hint(key); break;
    default: break;
  }
}

void Simulation::open_claim(std::uint32_t host, std::uint32_t lane) {
  Lane& going = hosts_[host]->lanes[lane];
  if (free_claims_.empty()) {
    free_claims_.push_back(static_cast<std::uint32_t>(claims_.size()));
    claims_.emplace_back();
  }
  going.claim = free_claims_.back();
  free_claims_.pop_back();
  HeldClaim& claim = claims_[going.claim];
  claim = {host, going.key, going.token, Time(-1), Time(-1), true};
  plan(now_ + scenario_.policy.lease / 3, Event::What::Renew, host, going.claim);
  ++holders_;
  // Every so many-th holder, not one by chance: the share is exact however few there are. He stops somewhere in his
  // compile, for half a lease to four.
  const double stalls = scenario_.stalled;
  if (stalls <= 0 ||
      (holders_ + static_cast<std::uint64_t>(0.5 / stalls)) % static_cast<std::uint64_t>(1 / stalls) != 0) {
    return;
  }
  Jitter drawn(scenario_.seed ^ (holders_ << 20U));
  claim.stalled_from = now_ + from_seconds(seconds(cost_of(scenario_, going.key)) * drawn.unit());
  claim.stalled_until = claim.stalled_from + from_seconds(seconds(scenario_.policy.lease) * (0.5 + 3.5 * drawn.unit()));
  ++outcome_.stalled;
}

void Simulation::renew(std::uint32_t number) {
  const HeldClaim& claim = claims_[number];
  if (!claim.open) {
    free_claims_.push_back(number);  // only now: nothing is planned for it any more
    return;
  }
  if (now_ >= claim.stalled_from && now_ < claim.stalled_until) {
    return plan(claim.stalled_until, Event::What::Renew, claim.host, number);
  }
  if (hosts_[claim.host]->guards[1].closed()) {
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
  plan(now_ + scenario_.policy.lease / 3, Event::What::Renew, claim.host, number);
}

void Simulation::send_errand(std::uint32_t host, const Errand& errand) {
  Host& of = *hosts_[host];
  of.errands.push_back(errand);
  if (of.errands.size() == 1) run_errand(host);
}

void Simulation::run_errand(std::uint32_t host) {
  Host& of = *hosts_[host];
  const Errand errand = of.errands.front();
  const bool release = errand.claim != kNone;
  const Time limit = release ? scenario_.policy.budget : scenario_.policy.upload_limit;
  if (!of.guard(errand.op).closed()) {
    if (!release) ++outcome_.lost_uploads;
    return next_errand(host);
  }
  Time at{};
  const std::uint32_t token = release ? claims_[errand.claim].token : 0;
  const bool in_time = send(host, errand.key, token, errand.op, false, limit, at);
  plan(at, in_time ? Event::What::UploadAnswered : Event::What::UploadTimedOut, host, 0);
}

void Simulation::errand_answered(std::uint32_t host, bool in_time) {
  Host& of = *hosts_[host];
  Errand& errand = of.errands.front();
  if (!in_time) {
    ++outcome_.timeouts;
    failed(host, errand.op);
    if (errand.claim == kNone) ++outcome_.lost_uploads;
    return next_errand(host);
  }
  of.guard(errand.op).succeeded();
  if (errand.claim != kNone) {
    shelf_.release(errand.key, claims_[errand.claim].token);
    return next_errand(host);
  }
  if (errand.op == Op::WriteAction) shelf_.put_entry(errand.key);
  if (errand.op == Op::WriteHint) {
    shelf_.put_hint(errand.key);
    return next_errand(host);
  }
  errand.op = next_of(errand.op);
  run_errand(host);
}

void Simulation::next_errand(std::uint32_t host) {
  Host& of = *hosts_[host];
  if (of.errands.front().claim != kNone) claims_[of.errands.front().claim].open = false;
  of.errands.pop_front();
  if (!of.errands.empty()) return run_errand(host);
  const bool last = of.batch + 1 == scenario_.batches.size();
  if (last && of.done == scenario_.measured().keys) hosts_[host].reset();
}

void Simulation::failed(std::uint32_t host, Op op) {
  Breaker& guard = hosts_[host]->guard(op);
  if (!guard.failed(now_)) return;
  ++outcome_.openings;
  plan(guard.probe_at(), Event::What::ProbeDue, host, is_lease(op) ? 1 : 0);
}

void Simulation::probe(std::uint32_t host, std::uint32_t server) {
  if (!hosts_[host]->guards[server].begin_probe(now_)) return;
  Time at{};
  const Op op = server == 0 ? Op::ProbeHttp : Op::ProbeLeases;
  const bool in_time = send(host, 0, 0, op, false, scenario_.policy.budget, at);
  plan(at, in_time ? Event::What::ProbeAnswered : Event::What::ProbeTimedOut, host, server);
}

void Simulation::probed(std::uint32_t host, std::uint32_t server, bool answered) {
  Breaker& guard = hosts_[host]->guards[server];
  if (guard.probed(answered, now_)) return;
  plan(guard.probe_at(), Event::What::ProbeDue, host, server);
}

}  // namespace kiln::fleet
