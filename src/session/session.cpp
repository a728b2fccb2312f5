#include <kiln/session.hpp>

#include <utility>

#include "base/guarded.hpp"
#include "session/core.hpp"
#include "session/stream.hpp"

namespace kiln {

Result<Session> Session::open(SessionOptions options) {
  return guarded([&]() -> Result<Session> { return Session(std::make_shared<State>(std::move(options))); });
}

Session& Session::shared() {
  static Session& session = *new Session(std::make_shared<State>(SessionOptions{}));
  return session;
}

Result<Artifact> Session::artifact(const Unit& unit, const Target& target, std::chrono::nanoseconds limit,
                                   Caller caller) {
  return guarded([&]() -> Result<Artifact> {
    const auto answer = state_->core().get({unit, fitted(unit, target)}, limit, caller);
    if (!answer) return answer.error();
    return (*answer)->artifact;
  });
}

void Session::request(const Needs& needs) {
  attempt([&] {
    Core& core = state_->core();
    if (needs.requested_by_.load(std::memory_order_relaxed) == core.number()) return;
    const Units units = needs.units();
    core.declare(units);
    core.request(units);
    needs.requested_by_.store(core.number(), std::memory_order_relaxed);
  });
}

void Session::request(const Units& units) {
  attempt([&] { state_->core().request(units); });
}

void Session::request(const Units& units, const Target& target) {
  attempt([&] { state_->core().request(units, target); });
}

void Session::cancel(const Units& units) { state_->core().cancel(units); }
void Session::cancel(const Units& units, const Target& target) { state_->core().cancel(units, target); }

void Session::retry(const Units& units) { state_->core().retry(units); }
void Session::retry(const Units& units, const Target& target) { state_->core().retry(units, target); }

Handle Session::handle(const Unit& unit, const std::string& entry) {
  // A handle keeps its session, and with it the slot.
  return Handle(std::shared_ptr<detail::ReadySlot>(state_, &state_->core().handle(unit, entry)));
}

Result<Kernel> Session::get(const Unit& unit, const std::string& entry, std::chrono::nanoseconds limit, Caller caller) {
  // Without asking whether this is a forked child: there no inherited handle is ready.
  if (const Core* made = state_->current.load(std::memory_order_acquire)) {
    const HandleState* known = made->find_handle(unit, entry);
    const detail::KernelState* ready = known != nullptr ? known->ready.load(std::memory_order_acquire) : nullptr;
    if (ready != nullptr) return Kernel(ready);
  }
  return guarded([&]() -> Result<Kernel> {
    Core& core = state_->core();
    HandleState& handle = core.handle(unit, entry);
    const auto kernel = core.get(handle, limit, nullptr, caller);
    if (!kernel) return kernel.error();
    return Kernel(*kernel);
  });
}

Result<std::vector<DeviceInfo>> Session::devices(const std::string& kind) {
  return guarded([&]() -> Result<std::vector<DeviceInfo>> {
    const auto backend = state_->core().open(kind, kForever);
    if (!backend) return backend.error();
    return (*backend)->device().devices();
  });
}

EventCallback Session::listeners() const { return state_->core().observer().callback(); }

Status Session::make_current(const std::string& kind, std::size_t device) {
  return guarded([&]() -> Status {
    const auto backend = state_->core().open(kind, kForever);
    if (!backend) return backend.error();
    return (*backend)->device().make_current(device);
  });
}

Result<Stream> Session::stream(const std::string& kind) {
  return guarded([&]() -> Result<Stream> {
    const auto backend = state_->core().open(kind, kForever);
    if (!backend) return backend.error();
    const auto native = (*backend)->device().make_stream();
    if (!native) return native.error();
    return Stream(std::make_shared<detail::StreamState>(state_, (*backend)->device(), *native));
  });
}

SessionStatus Session::status() const { return state_->core().status(); }

std::string Session::metrics() const { return state_->core().metrics(); }

std::vector<UndeclaredUse> Session::undeclared() const { return state_->core().undeclared(); }

Status Session::write_trace() const {
  return guarded([&] { return state_->core().write_trace(); });
}

std::vector<Cold> Plan::ensure_warm(Session& session, std::chrono::nanoseconds limit, Caller caller) const {
  Core& core = session.state_->core();
  Units units;
  for (const Needs* needs : stages_) {
    for (Unit& unit : needs->units()) units.push_back(std::move(unit));
  }
  core.declare(units);
  return core.wait_for(units, limit, caller);
}

}  // namespace kiln
