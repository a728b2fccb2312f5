// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "session/access.hpp"
#include "session/cccl_callable_state.hpp"

namespace kiln::cccl {
namespace {

void emit_fallback(const SessionImpl& impl, const Unit& unit, std::chrono::nanoseconds start, const Error& reason) {
  if (!impl.emitter()) return;
  Event event;
  event.kind = Event::Kind::CalledFallback;
  event.unit = unit.label();
  event.ms = milliseconds_since(system_clock(), start);
  event.warm = false;
  event.message = reason.message;
  impl.emitter().emit(event);
}

Result<Callable> load_callable(const std::shared_ptr<Session::State>& owner, const Spec& spec, const Unit& unit,
                               Wait wait, Caller caller) {
  if (Status good = spec.validate(); !good) return std::move(good).error();
  CallDeadline deadline(wait);
  SessionImpl& impl = owner->impl();
  auto used = impl.kernels().load_module(unit, deadline, caller);
  if (!used) return std::move(used).error();
  auto module = std::dynamic_pointer_cast<const CcclModule>(std::move(used->module));
  if (module == nullptr) return make_error(Code::Internal, "the loaded code is not a CCCL algorithm");
  auto state = std::make_shared<Callable::State>(Callable::State::Params{owner, used->device, std::move(module), spec,
                                                                         used->target, unit.label(), used->flow,
                                                                         used->origin, impl.emitter()});
  state->warm_up();
  return detail::CallableAccess::make(std::move(state));
}

}  // namespace

Result<Callable> get(Session& session, const Spec& spec, Wait wait, Caller caller) {
  const std::shared_ptr<Session::State>& owner = kiln::detail::SessionAccess::state(session);
  const Unit unit = spec.unit();
  const auto start = system_clock().steady();
  auto callable = load_callable(owner, spec, unit, wait, caller);
  if (callable) return callable;
  Error error = std::move(callable).error();
  if (error.code == Code::TimedOut) error.message += ", run your own code until then";
  emit_fallback(owner->impl(), unit, start, error);
  return error;
}

std::vector<Result<Artifact>> compile_for_targets(Session& session, const Spec& spec,
                                                  const std::vector<Target>& targets, Wait wait, Caller caller) {
  CallDeadline deadline(wait);
  const std::function<bool()> keep_waiting = [&] {
    return deadline.interrupt() == nullptr || !deadline.interrupt()->poll();
  };
  const Unit unit = spec.for_targets(targets).unit();
  // Requests all of them first, so that they are compiled in parallel while this waits for the first one.
  for (const Target& target : targets) session.request({unit}, target);
  std::vector<Result<Artifact>> artifacts;
  artifacts.reserve(targets.size());
  for (const Target& target : targets) {
    artifacts.push_back(session.artifact(unit, target, {deadline.remaining(), keep_waiting}, caller));
  }
  return artifacts;
}

/// The callables that are ready, one for each target used so far.
struct NonBlockingCallable::State {
  Session session;
  const Spec spec;
  const FallbackFunction fallback;  // a function of the user; may be empty
  std::vector<Callable> ready;
  bool was_warm = false;

  Result<Callable> find(Caller caller);
};

Result<Callable> NonBlockingCallable::State::find(Caller caller) {
  for (const Callable& callable : ready) {
    const auto here = callable.matches_current_device();
    if (here && *here) return callable;
  }
  auto fresh = get(session, spec, std::chrono::nanoseconds(0), caller);
  if (fresh) ready.push_back(*fresh);
  return fresh;
}

NonBlockingCallable::NonBlockingCallable(Session& session, Spec spec, FallbackFunction fallback)
    : state_(std::make_shared<State>(State{session, std::move(spec), std::move(fallback), {}})) {}

Status NonBlockingCallable::run(const Call& call, Caller caller) {
  const Result<Callable> callable = state_->find(caller);
  state_->was_warm = callable.has_value();
  if (callable) return (*callable)(call);
  if (state_->fallback) return state_->fallback(call);
  return callable.error();
}

bool NonBlockingCallable::used_compiled() const noexcept { return state_->was_warm; }

}  // namespace kiln::cccl
