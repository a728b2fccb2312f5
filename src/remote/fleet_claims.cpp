// SPDX-License-Identifier: Apache-2.0
#include "remote/fleet_claims.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/process/per_process.hpp"
#include "base/process/process_lifecycle.hpp"
#include "remote/jitter.hpp"
#include "remote/lease_renewer.hpp"
#include "remote/lease_waiter.hpp"
#include "remote/query_deadline.hpp"

namespace kiln {
namespace {

using Time = std::chrono::nanoseconds;
using Outcome = Claims::Outcome;

// Returns `node7:4242:` and a unique number. The first part helps users who inspect the lease table; the number
// distinguishes owners.
std::string new_owner() {
  std::array<char, 65> host{};
  (void)gethostname(host.data(), host.size() - 1);
  std::string owner(host.data());
  std::replace_if(
      owner.begin(), owner.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.'; }, '-');
  return owner + ":" + std::to_string(getpid()) + ":" + random_hex_id();
}

// A claim without a lease: a hedge, or the claim of a host that cannot publish.
class NullClaim final : public Claim {};

Claims::AcquireResult answer(Outcome outcome, std::string reason = {}) { return {outcome, nullptr, std::move(reason)}; }

}  // namespace

struct FleetClaims::State {
  explicit State(Params given) : params(std::move(given)) {}

  LeaseRenewer& manager() { return keepers.get(*params.clock); }

  /// Sends one request to the lease table, if its guard allows one now. `budget` can be null. `question` takes the
  /// deadline and returns Result<…>. It ends early if a caller begins to wait for the background request of `served`,
  /// which can be null.
  template <class Question>
  auto ask(ServerTimeBudget* budget, const ServerTimeBudget* served, const Question& question)
      -> decltype(question(Deadline(Time()))) {
    params.guard->recheck(budget);
    const Time timeout = params.guard->time_budget(budget);
    if (timeout <= Time(0)) {
      const char* reason = params.guard->accepts(budget) ? ": no time left for a request"
                                                         : " failed recently and is not used until it recovers";
      return make_error(Code::Unavailable, params.table->describe() + reason);
    }
    ServerGuard::Call asked(*params.guard, budget, timeout);
    const QueryDeadline limit(*params.clock, timeout, served, params.guard->urgent_timeout());
    auto answered = question(limit.deadline());
    if (!answered && limit.is_ended_by_caller()) {
      asked.timed_out(answered.error());
    } else if (!answered) {
      asked.failed(answered.error());
    }
    return answered;
  }
  void emit(Event::Kind kind, const RequestKey& request, std::string message, const char* selected = "",
            Time took = {}) const;

  const Params params;
  PerProcess<LeaseRenewer> keepers;  // a child of fork renews no leases of its parent
};

void FleetClaims::State::emit(Event::Kind kind, const RequestKey& request, std::string message, const char* selected,
                              Time took) const {
  if (!params.emitter) return;
  Event event;
  event.kind = kind;
  event.origin = params.table->describe();
  event.message = std::move(message) + " (request " + request.hex().substr(0, 12) + ")";
  event.selected = selected;
  event.ms = std::chrono::duration<double, std::milli>(took).count();
  params.emitter.emit(event);
}

namespace {

/// A lease of this process, renewed until it is released. Copies in children of fork do not release it.
class HeldLease {
 public:
  HeldLease(std::shared_ptr<FleetClaims::State> state, const RequestKey& request, std::string owner, Time since)
      : state_(std::move(state)), request_(request), owner_(std::move(owner)) {
    const FleetClaims::Params& params = state_->params;
    LeaseRenewer::Renewal kept;
    kept.lease = params.policy.lease_ttl;
    kept.maximum = params.max_hold;
    kept.since = since;
    // Not a shared pointer: the state owns the renewer, whose thread cannot join itself.
    kept.renew = [state = state_.get(), request, own = owner_] {
      const FleetClaims::Params& with = state->params;
      const Result<bool> renewed = state->ask(nullptr, nullptr, [&](const Deadline& deadline) {
        return with.table->renew(request, own, with.policy.lease_ttl, deadline);
      });
      if (!renewed) return LeaseRenewer::RenewResult::Unknown;
      return *renewed ? LeaseRenewer::RenewResult::Renewed : LeaseRenewer::RenewResult::Lost;
    };
    kept.lost = [state = state_.get(), request](const std::string& reason) {
      state->emit(Event::Kind::LeaseLost, request, reason);
    };
    number_ = state_->manager().add(kept);
  }
  ~HeldLease() { release(); }
  HeldLease(const HeldLease&) = delete;
  HeldLease& operator=(const HeldLease&) = delete;

  void release() {
    if (process_ != fork_generation() || gone_.exchange(true)) return;
    state_->manager().forget(number_);
    // Regardless of the caller's remaining budget: other hosts wait for this release. A lease that cannot be released
    // expires.
    (void)state_->ask(nullptr, nullptr, [&](const Deadline& deadline) {
      return state_->params.table->release(request_, owner_, deadline);
    });
  }

 private:
  const std::shared_ptr<FleetClaims::State> state_;
  const RequestKey request_;
  const std::string owner_;
  const unsigned process_ = fork_generation();
  std::uint64_t number_ = 0;
  std::atomic<bool> gone_{false};
};

/// A claim that is released on the background queue after the tasks queued before it. The lease is renewed until then,
/// because an upload may take longer than a lease.
class FleetClaim final : public Claim {
 public:
  FleetClaim(std::shared_ptr<HeldLease> holding, std::shared_ptr<BackgroundQueue> background_queue)
      : holding_(std::move(holding)), background_queue_(std::move(background_queue)) {}
  ~FleetClaim() override {
    if (background_queue_ == nullptr || process_ != fork_generation()) return;
    background_queue_->enqueue([holding = holding_] { holding->release(); });
  }

 private:
  const std::shared_ptr<HeldLease> holding_;  // its destructor releases the lease, also if the queue drops the task
  const std::shared_ptr<BackgroundQueue> background_queue_;
  const unsigned process_ = fork_generation();
};

// Sends the request of a wait step to the lease table and passes the result to `steps`.
Status query_lease_table(FleetClaims::State& state, LeaseWaiter::Step step, LeaseWaiter& steps,
                         const RequestKey& request, const std::string& owner, Time window, ServerTimeBudget* budget,
                         const ServerTimeBudget* served) {
  const FleetClaims::Params& with = state.params;
  const auto reported = [&](const auto& answered, const auto& emit) -> Status {
    if (!answered) return answered.error();
    emit(*answered, with.clock->steady());
    return {};
  };
  switch (step) {
    case LeaseWaiter::Step::Acquire:
      return reported(state.ask(budget, served,
                                [&](const Deadline& deadline) {
                                  return with.table->try_acquire(request, owner, with.policy.lease_ttl, deadline);
                                }),
                      [&](bool mine, Time now) { steps.on_acquire(mine, now); });
    case LeaseWaiter::Step::Check:
      return reported(state.ask(budget, served,
                                [&](const Deadline& deadline) { return with.table->remaining_ttl(request, deadline); }),
                      [&](Time remaining, Time now) { steps.on_check(remaining > Time(0), now, remaining); });
    case LeaseWaiter::Step::TryHedge:
      return reported(state.ask(budget, served,
                                [&](const Deadline& deadline) {
                                  return with.table->try_hedge(request, with.policy.max_hedges, window, deadline);
                                }),
                      [&](bool mine, Time now) { steps.on_hedge(mine, now); });
    default: return make_error(Code::Internal, "this lease wait step sends no request");
  }
}

}  // namespace

FleetClaims::FleetClaims(Params params) : state_(std::make_shared<State>(std::move(params))) {}

Claims::AcquireResult FleetClaims::acquire(const RequestKey& request, std::chrono::milliseconds wait,
                                           const RequestContext& context) {
  const Params& params = state_->params;
  const Time maximum = std::clamp<std::chrono::milliseconds>(wait, std::chrono::milliseconds(0), kMaxClaimWait);
  const Time start = params.clock->steady();
  Jitter jitter = Jitter::from_random_seed();
  LeaseWaiter steps(params.policy, maximum, start, jitter, params.can_publish);
  const std::string owner = params.can_publish ? new_owner() : std::string();
  bool slept = false;
  const auto waited = [&](const char* how) {
    if (!slept) return;
    state_->emit(Event::Kind::LeaseWaited, request, "another host was compiling it", how,
                 params.clock->steady() - start);
  };
  for (Time asked = start;;) {
    const Time now = params.clock->steady();
    const LeaseWaiter::Next next = steps.next(now);
    switch (next.step) {
      case LeaseWaiter::Step::Acquire:
      case LeaseWaiter::Step::Check:
      case LeaseWaiter::Step::TryHedge: {
        asked = now;
        ServerTimeBudget* budget = context.server_budget;
        if (params.store != nullptr && !params.store->accepts(budget)) {
          return answer(Outcome::Unavailable, "no claim in the fleet: the remote store is unavailable");
        }
        if (budget != nullptr && budget->is_background() && params.store != nullptr && params.store->is_slow())
          steps.on_slow_store();
        // Polling the holder is part of the wait for it, which has its own limit.
        ServerTimeBudget poll(params.policy.budget);
        if (slept) budget = budget != nullptr && budget->is_background() ? nullptr : &poll;
        const Status put =
            query_lease_table(*state_, next.step, steps, request, owner, maximum, budget, context.server_budget);
        const bool retries = !put && params.guard->accepts(budget) && steps.on_failure(params.clock->steady());
        if (!put && !retries) return answer(Outcome::Unavailable, put.error().message);
        break;
      }
      case LeaseWaiter::Step::Sleep:
        slept = true;
        if (context.is_cancelled()) return answer(Outcome::TimedOut, "another host is compiling it");
        context.sleep(*params.clock, next.until - now);
        break;
      case LeaseWaiter::Step::Compile: {
        if (!params.can_publish) return {Outcome::Acquired, std::make_unique<NullClaim>(), {}};
        auto holding = std::make_shared<HeldLease>(state_, request, owner, asked);
        return {Outcome::Acquired, std::make_unique<FleetClaim>(std::move(holding), params.background_queue), {}};
      }
      case LeaseWaiter::Step::Hedge:
        waited("hedged");
        state_->emit(Event::Kind::Hedged, request, "the host that holds the lease is slow: this host compiles it too");
        return {Outcome::Acquired, std::make_unique<NullClaim>(), {}};
      case LeaseWaiter::Step::ReleasedByOther: waited("finished"); return answer(Outcome::ReleasedByOther);
      case LeaseWaiter::Step::TimedOut:
        waited("timed_out");
        return answer(Outcome::TimedOut, "another host is compiling it");
    }
  }
}

}  // namespace kiln
