#include "remote/fleet_claims.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/per_process.hpp"
#include "base/process_life.hpp"
#include "remote/jitter.hpp"
#include "remote/lease_keeper.hpp"
#include "remote/lease_wait.hpp"
#include "store/allowance.hpp"

namespace kiln {
namespace {

using Time = std::chrono::nanoseconds;
using Outcome = Claims::Outcome;

constexpr std::chrono::milliseconds kForever =
    std::chrono::hours(24 * 365);  // longer waits would overflow the clock's nanoseconds

// How often somebody who naps looks whether he is still wanted: Ctrl-C ends a wait within a tenth of a second.
constexpr Time kWantedLook = std::chrono::milliseconds(80);

// `node7:4242:` and a number that nobody else has: for people who look into the table, and for telling owners apart.
std::string new_owner() {
  std::array<char, 65> host{};
  (void)gethostname(host.data(), host.size() - 1);
  std::string owner(host.data());
  std::replace_if(
      owner.begin(), owner.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.'; }, '-');
  return owner + ":" + std::to_string(getpid()) + ":" + unique_digits();
}

// A claim that holds nothing: a hedge, or that of a host that may hold none.
class NoClaim final : public Claim {};

Claims::Answer answer(Outcome outcome, std::string reason = {}) { return {outcome, nullptr, std::move(reason)}; }

}  // namespace

struct FleetClaims::State {
  explicit State(Parts given) : parts(std::move(given)) {}

  LeaseKeeper& keeper() { return keepers.get(*parts.clock); }

  /// One question to the table, if it may be asked now; what it answers is Result<…>, as long as this takes at most.
  template <class Question>
  auto ask(const Question& question) -> decltype(question(Time())) {
    const Time limit = parts.guard->allowed();
    if (limit <= Time(0)) {
      const char* why = parts.guard->closed() ? " was not asked: no time is left for servers"
                                              : " failed a moment ago and is left alone for a while";
      return failure(Code::Unavailable, parts.table->describe() + why);
    }
    ServerGuard::Question asked(*parts.guard);
    auto answered = question(limit);
    if (!answered) asked.failed(answered.error());
    return answered;
  }
  void tell(Event::Kind kind, const RequestKey& request, std::string message, const char* selected = "",
            Time took = {}) const;

  const Parts parts;
  PerProcess<LeaseKeeper> keepers;  // a child of fork keeps nothing of its parent's
};

void FleetClaims::State::tell(Event::Kind kind, const RequestKey& request, std::string message, const char* selected,
                              Time took) const {
  if (!parts.observer) return;
  Event event;
  event.kind = kind;
  event.origin = parts.table->describe();
  event.message = std::move(message) + " (request " + request.hex().substr(0, 12) + ")";
  event.selected = selected;
  event.ms = std::chrono::duration<double, std::milli>(took).count();
  parts.observer.tell(event);
}

namespace {

/// A lease that is ours, renewed until it is let go. Copies of it in children of fork are not theirs.
class Holding {
 public:
  Holding(std::shared_ptr<FleetClaims::State> state, const RequestKey& request, std::string owner, Time since)
      : state_(std::move(state)), request_(request), owner_(std::move(owner)) {
    const FleetClaims::Parts& parts = state_->parts;
    LeaseKeeper::Kept kept;
    kept.lease = parts.policy.lease;
    kept.most = parts.most_held;
    kept.since = since;
    // Not what holds the state: the keeper goes with it, and its thread cannot wait for itself.
    kept.renew = [state = state_.get(), request, own = owner_] {
      const FleetClaims::Parts& with = state->parts;
      const Result<bool> renewed =
          state->ask([&](Time limit) { return with.table->renew(request, own, with.policy.lease, limit); });
      if (!renewed) return LeaseKeeper::Answer::Unknown;
      return *renewed ? LeaseKeeper::Answer::Renewed : LeaseKeeper::Answer::Lost;
    };
    kept.lost = [state = state_.get(), request](const std::string& why) {
      state->tell(Event::Kind::LeaseLost, request, why);
    };
    number_ = state_->keeper().keep(kept);
  }
  ~Holding() { let_go(); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  void let_go() {
    if (process_ != fork_generation() || gone_.exchange(true)) return;
    state_->keeper().forget(number_);
    // Whatever is left of the caller's allowance: others wait for this.
    const Allowance own(state_->parts.policy.budget);
    // One that cannot be let go lapses.
    (void)state_->ask([&](Time limit) { return state_->parts.table->release(request_, owner_, limit); });
  }

 private:
  const std::shared_ptr<FleetClaims::State> state_;
  const RequestKey request_;
  const std::string owner_;
  const unsigned process_ = fork_generation();
  std::uint64_t number_ = 0;
  std::atomic<bool> gone_{false};
};

/// Lets go behind what was sent before, and is renewed until then: an upload may take longer than a lease.
class FleetClaim final : public Claim {
 public:
  FleetClaim(std::shared_ptr<Holding> holding, std::shared_ptr<Courier> courier)
      : holding_(std::move(holding)), courier_(std::move(courier)) {}
  ~FleetClaim() override {
    if (courier_ == nullptr || process_ != fork_generation()) return;
    courier_->send_always([holding = holding_] { holding->let_go(); });
  }

 private:
  const std::shared_ptr<Holding> holding_;  // lets go at its end, also where the courier forgets its errand
  const std::shared_ptr<Courier> courier_;
  const unsigned process_ = fork_generation();
};

// Asks the table what the wait wants to know.
Status put_question(FleetClaims::State& state, LeaseWait::Step step, LeaseWait& steps, const RequestKey& request,
                    const std::string& owner, Time window) {
  const FleetClaims::Parts& with = state.parts;
  const auto told = [&](const auto& answered, const auto& tell) -> Status {
    if (!answered) return answered.error();
    tell(*answered, with.clock->steady());
    return {};
  };
  switch (step) {
    case LeaseWait::Step::Take:
      return told(state.ask([&](Time limit) { return with.table->take(request, owner, with.policy.lease, limit); }),
                  [&](bool mine, Time now) { steps.took(mine, now); });
    case LeaseWait::Step::Peek:
      return told(state.ask([&](Time limit) { return with.table->held(request, limit); }),
                  [&](Time left, Time now) { steps.peeked(left > Time(0), now, left); });
    case LeaseWait::Step::Draw:
      return told(state.ask([&](Time limit) { return with.table->draw(request, with.policy.hedges, window, limit); }),
                  [&](bool mine, Time now) { steps.drew(mine, now); });
    default: return failure(Code::Internal, "this step of a wait asks nothing");
  }
}

}  // namespace

FleetClaims::FleetClaims(Parts parts) : state_(std::make_shared<State>(std::move(parts))) {}

Claims::Answer FleetClaims::acquire(const RequestKey& request, std::chrono::milliseconds wait,
                                    const std::stop_token& stop) {
  const Parts& parts = state_->parts;
  const Time most = std::clamp<std::chrono::milliseconds>(wait, std::chrono::milliseconds(0), kForever);
  const Time start = parts.clock->steady();
  Jitter jitter = Jitter::of_this_process();
  LeaseWait steps(parts.policy, most, start, jitter, parts.may_hold);
  const std::string owner = parts.may_hold ? new_owner() : std::string();
  bool napped = false;
  const auto waited = [&](const char* how) {
    if (!napped) return;
    state_->tell(Event::Kind::LeaseWaited, request, "another host was compiling it", how,
                 parts.clock->steady() - start);
  };
  for (Time asked = start;;) {
    const Time now = parts.clock->steady();
    const LeaseWait::Next next = steps.next(now);
    switch (next.step) {
      case LeaseWait::Step::Take:
      case LeaseWait::Step::Peek:
      case LeaseWait::Step::Draw: {
        asked = now;
        if (parts.store != nullptr && !parts.store->closed()) {
          return answer(Outcome::Unavailable, "what other hosts compile is out of reach: their store is not asked");
        }
        // Looking whether a holder is done is part of the wait for him, which has a bound of its own.
        std::optional<Allowance> own;
        if (napped) own.emplace(parts.policy.budget);
        const Status put = put_question(*state_, next.step, steps, request, owner, most);
        if (!put) return answer(Outcome::Unavailable, put.error().message);
        break;
      }
      case LeaseWait::Step::Nap:
        napped = true;
        if (stop.stop_requested() || Allowance::over()) {
          return answer(Outcome::TimedOut, "another host is compiling it");
        }
        parts.clock->sleep(stop.stop_possible() || Allowance::may_be_over() ? std::min(next.until - now, kWantedLook)
                                                                            : next.until - now);
        break;
      case LeaseWait::Step::Compile: {
        if (!parts.may_hold) return {Outcome::Mine, std::make_unique<NoClaim>(), {}};
        auto holding = std::make_shared<Holding>(state_, request, owner, asked);
        return {Outcome::Mine, std::make_unique<FleetClaim>(std::move(holding), parts.courier), {}};
      }
      case LeaseWait::Step::Hedge:
        waited("hedged");
        state_->tell(Event::Kind::Hedged, request, "the host that compiles it takes long: this one compiles it too");
        return {Outcome::Mine, std::make_unique<NoClaim>(), {}};
      case LeaseWait::Step::Finished: waited("finished"); return answer(Outcome::Finished);
      case LeaseWait::Step::GiveUp:
        waited("timed_out");
        return answer(Outcome::TimedOut, "another host is compiling it");
    }
  }
}

}  // namespace kiln
