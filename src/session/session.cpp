// SPDX-License-Identifier: Apache-2.0
#include <kiln/session.hpp>

#include <utility>

#include "base/catch_to_error.hpp"
#include "core/unit_access.hpp"
#include "session/session_impl.hpp"
#include "session/stream_state.hpp"

namespace kiln {

Result<Session> Session::open(SessionOptions options) {
  return catch_to_error([&]() -> Result<Session> { return Session(State::open(std::move(options))); });
}

Session& Session::shared() {
  static Session& session = *new Session(State::open(SessionOptions{}));
  return session;
}

Result<Artifact> Session::artifact(const Unit& unit, const Target& target, Wait wait, Caller caller) {
  Result<ResolvedArtifact> resolved = resolve(unit, target, wait, caller);
  if (!resolved) return std::move(resolved).error();
  return std::move(resolved->artifact);
}

Result<ResolvedArtifact> Session::resolve(const Unit& unit, const Target& target, Wait wait, Caller caller) {
  return catch_to_error([&]() -> Result<ResolvedArtifact> {
    CallDeadline deadline(wait);
    SessionImpl& impl = state_->impl();
    impl.kernels().record_undeclared_use(unit, {}, caller);
    const auto answer = impl.requests().get({unit, effective_target(unit, target)}, deadline, caller);
    if (!answer) return answer.error();
    return resolved_artifact(**answer);
  });
}

void Session::request(const Requirements& requirements) {
  ignore_failures([&] {
    SessionImpl& impl = state_->impl();
    SessionRequests& requests = impl.requests();
    if (requirements.requested_by_.load(std::memory_order_relaxed) == requests.number()) return;
    const Units units = requirements.units();
    impl.kernels().declare(units);
    requests.request(units);
    requirements.requested_by_.store(requests.number(), std::memory_order_relaxed);
  });
}

void Session::request(const Units& units) {
  ignore_failures([&] { state_->impl().requests().request(units); });
}

void Session::request(const Units& units, const Target& target) {
  ignore_failures([&] { state_->impl().requests().request(units, target); });
}

void Session::cancel(const Units& units) { state_->impl().requests().cancel(units); }
void Session::cancel(const Units& units, const Target& target) { state_->impl().requests().cancel(units, target); }

void Session::retry(const Units& units) { state_->impl().requests().retry(units); }
void Session::retry(const Units& units, const Target& target) { state_->impl().requests().retry(units, target); }

void Session::refresh(const Units& units) { state_->impl().requests().refresh(units); }
void Session::release(const Units& units) { state_->impl().requests().release(units); }

KernelHandle Session::handle(const Unit& unit, const std::string& entry) {
  auto owner = state_->owner(state_->impl().handles().get(UnitAccess::identity(unit), entry));
  const detail::ReadySlot* const slot = owner->handle.get();
  return KernelHandle(unit, std::move(owner), slot);
}

Result<Kernel> Session::get(const Unit& unit, const std::string& entry, Wait wait, Caller caller) {
  return catch_to_error([&]() -> Result<Kernel> {
    if (std::optional<Kernel> ready = try_get(unit, entry)) return *std::move(ready);
    return handle(unit, entry).get_or_wait(wait, nullptr, caller);
  });
}

Result<Kernel> KernelHandle::get_or_wait(Wait wait, const StreamRef* stream, Caller caller) const {
  return catch_to_error([&]() -> Result<Kernel> {
    CallDeadline deadline(wait);
    SessionImpl& impl = owner_->session->impl();
    auto owner = owner_;
    // After a fork the handle belongs to the parent. The child has its own slot for the same kernel.
    if (&owner->handle->table != &impl.handles()) {
      owner = owner_->session->owner(impl.handles().get(UnitAccess::identity(unit_), owner_->handle->entry));
    }
    const auto kernel = impl.kernels().get(*owner->handle, unit_, deadline, stream, caller);
    if (!kernel) return kernel.error();
    return Kernel(*kernel, std::move(owner));
  });
}

std::optional<Kernel> Session::try_get(const Unit& unit, const std::string& entry) {
  // Needs no check for a forked child: no inherited kernel is ready there.
  SessionImpl* const impl = state_->impls.last();
  if (impl == nullptr) return std::nullopt;
  HandleTable::ReadyKernel ready = impl->handles().find_ready(UnitAccess::identity(unit), entry);
  if (ready.owner == nullptr) return std::nullopt;
  return Kernel(ready.kernel, std::move(ready.owner));
}

Result<std::vector<DeviceInfo>> Session::devices(Backend backend) {
  return catch_to_error([&]() -> Result<std::vector<DeviceInfo>> {
    const auto driver = state_->impl().requests().open(to_string(backend), Deadline(system_clock(), kForever));
    if (!driver) return driver.error();
    return (*driver)->device().devices();
  });
}

bool Session::has_only_cpu_devices(Backend backend) {
  return state_->impl().drivers().has_only_cpu_devices(to_string(backend));
}

EventCallback Session::event_callback() const { return state_->impl().emitter().callback(); }

Status Session::make_current(Backend backend, std::size_t device) {
  return catch_to_error([&]() -> Status {
    const auto driver = state_->impl().requests().open(to_string(backend), Deadline(system_clock(), kForever));
    if (!driver) return driver.error();
    return (*driver)->device().make_current(device);
  });
}

Result<Stream> Session::stream(Backend backend) {
  return catch_to_error([&]() -> Result<Stream> {
    const auto driver = state_->impl().requests().open(to_string(backend), Deadline(system_clock(), kForever));
    if (!driver) return driver.error();
    Device& device = (*driver)->device();
    if (Status current = device.ensure_current(); !current) return std::move(current).error();
    const auto native = device.create_stream();
    if (!native) return native.error();
    return Stream(std::make_shared<detail::StreamState>(state_, device, *native));
  });
}

SessionStatus Session::status() const { return state_->impl().requests().status(); }

std::string Session::metrics() const { return state_->impl().metrics(); }

std::vector<UndeclaredUse> Session::undeclared() const { return state_->impl().kernels().undeclared(); }

Status Session::write_trace() const {
  return catch_to_error([&] { return state_->impl().write_trace(); });
}

std::vector<NotReady> WarmupPlan::ensure_warm(Session& session, Wait wait, Caller caller) const {
  CallDeadline deadline(wait);
  KernelLoader& kernels = session.state_->impl().kernels();
  Units units = units_;
  for (const Requirements* requirements : stages_) {
    for (Unit& unit : requirements->units()) units.push_back(std::move(unit));
  }
  kernels.declare(units);
  return kernels.wait_for(units, deadline, caller);
}

}  // namespace kiln
