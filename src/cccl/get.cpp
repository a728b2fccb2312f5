#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "cccl/callable_state.hpp"
#include "session/access.hpp"

namespace kiln::cccl {

Result<Callable> get(Session& session, const Spec& spec, std::chrono::nanoseconds limit, Caller caller) {
  if (Status good = spec.check(); !good) return std::move(good).error();
  const std::shared_ptr<Session::State>& owner = kiln::detail::SessionAccess::state(session);
  const Unit unit = spec.unit();
  Core& core = owner->core();
  auto used = core.use(unit, limit, caller);
  if (!used) return std::move(used).error();
  auto module = std::dynamic_pointer_cast<const CcclModule>(std::move(used->module));
  if (module == nullptr) return failure(Code::Internal, "what was loaded is no algorithm of CCCL's");
  auto state = std::make_shared<Callable::State>(Callable::State::Parts{owner, used->device, std::move(module), spec,
                                                                        used->target, unit.label(), used->flow,
                                                                        used->origin, core.observer()});
  state->warm_up();
  return Callable(std::move(state));
}

std::vector<Result<Artifact>> build(Session& session, const Spec& spec, const std::vector<Target>& targets,
                                    std::chrono::nanoseconds limit) {
  const Deadline deadline(system_clock(), limit);
  const Unit unit = spec.for_targets(targets).unit();
  // All of them first, so that they are compiled beside each other while the first is waited for.
  for (const Target& target : targets) session.request({unit}, target);
  std::vector<Result<Artifact>> artifacts;
  artifacts.reserve(targets.size());
  for (const Target& target : targets) artifacts.push_back(session.artifact(unit, target, deadline.left()));
  return artifacts;
}

/// The callables that are ready, one for each target that was met.
struct Patient::State {
  Session session;
  const Spec spec;
  const OneShot one_shot;
  std::vector<Callable> ready;
  bool was_warm = false;

  Result<Callable> find(Caller caller);
  void tell(bool warm, const Call& call, const std::string& why) const;
};

Result<Callable> Patient::State::find(Caller caller) {
  for (const Callable& callable : ready) {
    const auto here = callable.is_for_here();
    if (!here) return here.error();
    if (*here) return callable;
  }
  auto fresh = get(session, spec, std::chrono::nanoseconds(0), caller);
  if (fresh) ready.push_back(*fresh);
  return fresh;
}

void Patient::State::tell(bool warm, const Call& call, const std::string& why) const {
  const Observer& observer = kiln::detail::SessionAccess::state(session)->core().observer();
  if (!observer) return;
  Event event;
  event.kind = warm ? Event::Kind::CalledWarm : Event::Kind::CalledOneShot;
  event.unit = spec.unit().label();
  event.stream = reinterpret_cast<std::uintptr_t>(call.stream);
  event.message = why;
  observer.tell(event);
}

Patient::Patient(Session& session, Spec spec, OneShot one_shot)
    : state_(std::make_shared<State>(State{session, std::move(spec), std::move(one_shot), {}})) {}

Status Patient::run(const Call& call, Caller caller) {
  const Result<Callable> callable = state_->find(caller);
  state_->was_warm = callable.ok();
  state_->tell(callable.ok(), call, callable ? std::string() : callable.error().message);
  if (callable) return (*callable)(call);
  if (state_->one_shot) return state_->one_shot(call);
  return callable.error();
}

bool Patient::was_warm() const noexcept { return state_->was_warm; }

}  // namespace kiln::cccl
