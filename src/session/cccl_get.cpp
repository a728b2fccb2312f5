#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "session/access.hpp"
#include "session/cccl_callable_state.hpp"

namespace kiln::cccl {

Result<Callable> get(Session& session, const Spec& spec, Wait wait, Caller caller) {
  if (Status good = spec.validate(); !good) return std::move(good).error();
  const std::shared_ptr<Session::State>& owner = kiln::detail::SessionAccess::state(session);
  const Unit unit = spec.unit();
  InterruptCheck interrupt(wait.keep_waiting());
  const Deadline deadline(system_clock(), wait.timeout(), &interrupt);
  SessionImpl& impl = owner->impl();
  // Before a compile, whose result could not be called.
  if (std::string reason = impl.drivers().uncallable_cccl_reason(); !reason.empty()) {
    Event event;
    event.kind = Event::Kind::CallRejected;
    event.unit = unit.label();
    event.message = reason;
    impl.emitter().emit(event);
    return make_error(Code::Unavailable, std::move(reason));
  }
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

std::vector<Result<Artifact>> compile_for_targets(Session& session, const Spec& spec,
                                                  const std::vector<Target>& targets, Wait wait) {
  InterruptCheck interrupt(wait.keep_waiting());
  const Deadline deadline(system_clock(), wait.timeout(), &interrupt);
  const std::function<bool()> keep_waiting = [&] { return !interrupt.poll(); };
  const Unit unit = spec.for_targets(targets).unit();
  // Requests all of them first, so that they are compiled in parallel while this waits for the first one.
  for (const Target& target : targets) session.request({unit}, target);
  std::vector<Result<Artifact>> artifacts;
  artifacts.reserve(targets.size());
  for (const Target& target : targets) {
    artifacts.push_back(session.artifact(unit, target, {deadline.remaining(), keep_waiting}));
  }
  return artifacts;
}

/// The callables that are ready, one for each target used so far.
struct NonBlockingCallable::State {
  Session session;
  const Spec spec;
  const FallbackFunction fallback;
  std::vector<Callable> ready;
  bool was_warm = false;

  Result<Callable> find(Caller caller);
  void emit(bool warm, const Call& call, const std::string& reason) const;
};

Result<Callable> NonBlockingCallable::State::find(Caller caller) {
  for (const Callable& callable : ready) {
    const auto here = callable.matches_current_device();
    if (!here) return here.error();
    if (*here) return callable;
  }
  auto fresh = get(session, spec, std::chrono::nanoseconds(0), caller);
  if (fresh) ready.push_back(*fresh);
  return fresh;
}

void NonBlockingCallable::State::emit(bool warm, const Call& call, const std::string& reason) const {
  const EventEmitter& emitter = kiln::detail::SessionAccess::state(session)->impl().emitter();
  if (!emitter) return;
  Event event;
  event.kind = warm ? Event::Kind::CalledCompiled : Event::Kind::CalledFallback;
  event.unit = spec.unit().label();
  event.stream = event_stream(call.stream);
  event.message = reason;
  emitter.emit(event);
}

NonBlockingCallable::NonBlockingCallable(Session& session, Spec spec, FallbackFunction fallback)
    : state_(std::make_shared<State>(State{session, std::move(spec), std::move(fallback), {}})) {}

Status NonBlockingCallable::run(const Call& call, Caller caller) {
  const Result<Callable> callable = state_->find(caller);
  state_->was_warm = callable.has_value();
  state_->emit(callable.has_value(), call, callable ? std::string() : callable.error().message);
  if (callable) return (*callable)(call);
  if (state_->fallback) return state_->fallback(call);
  return callable.error();
}

bool NonBlockingCallable::used_compiled() const noexcept { return state_->was_warm; }

}  // namespace kiln::cccl
