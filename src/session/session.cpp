#include <kiln/session.hpp>

#include <utility>

#include "base/catch_to_error.hpp"
#include "base/clock.hpp"
#include "session/session_impl.hpp"
#include "session/stream.hpp"

namespace kiln {

Result<Session> Session::open(SessionOptions options) {
  return catch_to_error([&]() -> Result<Session> { return Session(std::make_shared<State>(std::move(options))); });
}

Session& Session::shared() {
  static Session& session = *new Session(std::make_shared<State>(SessionOptions{}));
  return session;
}

Result<Artifact> Session::artifact(const Unit& unit, const Target& target, std::chrono::nanoseconds timeout,
                                   Caller caller) {
  return catch_to_error([&]() -> Result<Artifact> {
    const auto answer = state_->impl().get({unit, effective_target(unit, target)}, timeout, caller);
    if (!answer) return answer.error();
    return (*answer)->artifact;
  });
}

void Session::request(const Requirements& requirements) {
  ignore_failures([&] {
    SessionImpl& core = state_->impl();
    if (requirements.requested_by_.load(std::memory_order_relaxed) == core.number()) return;
    const Units units = requirements.units();
    core.declare(units);
    core.request(units);
    requirements.requested_by_.store(core.number(), std::memory_order_relaxed);
  });
}

void Session::request(const Units& units) {
  ignore_failures([&] { state_->impl().request(units); });
}

void Session::request(const Units& units, const Target& target) {
  ignore_failures([&] { state_->impl().request(units, target); });
}

void Session::cancel(const Units& units) { state_->impl().cancel(units); }
void Session::cancel(const Units& units, const Target& target) { state_->impl().cancel(units, target); }

void Session::retry(const Units& units) { state_->impl().retry(units); }
void Session::retry(const Units& units, const Target& target) { state_->impl().retry(units, target); }

void Session::refresh(const Units& units) { state_->impl().refresh(units); }
void Session::release(const Units& units) { state_->impl().release(units); }

KernelHandle Session::handle(const Unit& unit, const std::string& entry) {
  auto owner = std::make_shared<const detail::HandleOwner>(
      detail::HandleOwner{state_, state_->impl().handle(unit, entry), unit});
  detail::ReadySlot* const slot = owner->handle.get();
  return KernelHandle(std::move(owner), slot);
}

Result<Kernel> Session::get(const Unit& unit, const std::string& entry, std::chrono::nanoseconds timeout,
                            Caller caller) {
  // Needs no check for a forked child: no inherited kernel is ready there.
  if (const SessionImpl* made = state_->current.load(std::memory_order_acquire)) {
    if (const detail::KernelState* ready = made->find_ready(unit, entry)) return Kernel(ready);
  }
  return catch_to_error([&]() -> Result<Kernel> {
    const Deadline deadline(system_clock(), timeout);
    SessionImpl& core = state_->impl();
    for (;;) {
      const auto handle = core.handle(unit, entry);
      const auto kernel = core.get(*handle, unit, deadline.remaining(), nullptr, caller);
      if (!kernel) return kernel.error();
      // From here on the session keeps the kernel, unless the unit was released in the meantime.
      if (handle->is_listed.load(std::memory_order_acquire)) return Kernel(*kernel);
    }
  });
}

Result<std::vector<DeviceInfo>> Session::devices(const std::string& kind) {
  return catch_to_error([&]() -> Result<std::vector<DeviceInfo>> {
    const auto backend = state_->impl().open(kind, kForever);
    if (!backend) return backend.error();
    return (*backend)->device().devices();
  });
}

EventCallback Session::event_callback() const { return state_->impl().emitter().callback(); }

Status Session::make_current(const std::string& kind, std::size_t device) {
  return catch_to_error([&]() -> Status {
    const auto backend = state_->impl().open(kind, kForever);
    if (!backend) return backend.error();
    return (*backend)->device().make_current(device);
  });
}

Result<Stream> Session::stream(const std::string& kind) {
  return catch_to_error([&]() -> Result<Stream> {
    const auto backend = state_->impl().open(kind, kForever);
    if (!backend) return backend.error();
    const auto native = (*backend)->device().create_stream();
    if (!native) return native.error();
    return Stream(std::make_shared<detail::StreamState>(state_, (*backend)->device(), *native));
  });
}

SessionStatus Session::status() const { return state_->impl().status(); }

std::string Session::metrics() const { return state_->impl().metrics(); }

std::vector<UndeclaredUse> Session::undeclared() const { return state_->impl().undeclared(); }

Status Session::write_trace() const {
  return catch_to_error([&] { return state_->impl().write_trace(); });
}

std::vector<NotReady> WarmupPlan::ensure_warm(Session& session, std::chrono::nanoseconds timeout, Caller caller) const {
  SessionImpl& core = session.state_->impl();
  Units units;
  for (const Requirements* requirements : stages_) {
    for (Unit& unit : requirements->units()) units.push_back(std::move(unit));
  }
  core.declare(units);
  return core.wait_for(units, timeout, caller);
}

}  // namespace kiln
