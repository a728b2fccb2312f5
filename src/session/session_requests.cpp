// SPDX-License-Identifier: Apache-2.0
#include "session/session_requests.hpp"

#include <set>
#include <utility>

#include "base/error.hpp"
#include "core/unit_access.hpp"

namespace kiln {
namespace {

std::atomic<std::uint64_t> numbers_assigned{0};

std::vector<CompileRequest> requests_for_target(const Units& units, const Target& target) {
  std::vector<CompileRequest> requests;
  requests.reserve(units.size());
  for (const Unit& unit : units) requests.push_back({unit, effective_target(unit, target)});
  return requests;
}

}  // namespace

SessionRequests::SessionRequests(Engine& engine, Drivers& drivers, HandleTable& handles, LazyComponents& components,
                                 const EventEmitter& emitter)
    : engine_(engine), drivers_(drivers), handles_(handles), components_(components), emitter_(emitter),
      number_(++numbers_assigned), driver_opener_({"kiln-open", 0, 1}, [this] { open_requested_drivers(); }) {}

void SessionRequests::stop() {
  if (!ThreadPool::is_pool_thread()) driver_opener_.stop();
}

// Records the request after the get, and only if the configuration is loaded by then: a caller that cannot wait has no
// time to load it either, and will call again.
Result<ResolveResultPtr> SessionRequests::get(const CompileRequest& request, const Deadline& deadline, Caller caller) {
  auto result = engine_.get(request, deadline, caller);
  Components* const opened = components_.opened();
  if (opened != nullptr && opened->recorder() != nullptr) opened->recorder()->note(request.unit, request.target);
  return result;
}

Result<DriverBackend*> SessionRequests::open(const std::string& kind, const Deadline& deadline) {
  DriverBackend* const driver = drivers_.get(kind);
  if (driver == nullptr) return make_error(Code::Unsupported, "no driver loads units of kind '" + kind + "'");
  const bool is_limited = deadline.remaining() != kForever || deadline.interrupt() != nullptr;
  if (driver->opened() == nullptr && is_limited) {
    // Opening a driver cannot be interrupted, so a caller with a limit lets another thread open it.
    const MutexLock lock(mutex_);
    drivers_to_open_.insert(kind);
    if (driver_opener_.submit(1)) {
      while (driver->opened() == nullptr) {
        if (deadline.remaining() == std::chrono::nanoseconds(0)) {
          return make_error(Code::TimedOut, "the driver for units of kind " + kind + " is still being opened");
        }
        system_clock().wait_until(opened_, mutex_, deadline);
      }
    }
  }
  const Result<std::vector<Target>>& targets = driver->open();
  const MutexLock lock(mutex_);
  submit_pending();
  if (!targets) return targets.error();
  return driver;
}

// Opens the requested drivers and submits the units that waited for them. Runs on the opener's thread.
void SessionRequests::open_requested_drivers() {
  std::unordered_set<std::string> kinds;
  {
    const MutexLock lock(mutex_);
    kinds.swap(drivers_to_open_);
  }
  for (const std::string& kind : kinds) {
    DriverBackend* const opening = drivers_.get(kind);
    if (opening == nullptr) continue;
    if (const auto& targets = opening->open(); !targets) {
      emitter_.emit(Event::Kind::NoDevice, kind, targets.error().message);
    }
    const MutexLock lock(mutex_);
    opened_.notify_all();
  }
  const MutexLock lock(mutex_);
  submit_pending();
}

// The first thread that sees a driver open submits its units, under the lock: a unit is never here and in the engine.
void SessionRequests::submit_pending() {
  if (pending_units_.empty()) return;
  std::set<std::string> kinds;
  for (const auto& [kind, driver] : drivers_.all()) {
    if (driver->opened() != nullptr) kinds.insert(kind);
  }
  engine_.request(requests_for_devices(pending_units_.of_kinds(kinds)));
  pending_units_.remove_kinds(kinds);
}

// Returns one request for each unit and each target of its driver's devices.
std::vector<CompileRequest> SessionRequests::requests_for_devices(const Units& units) const {
  std::vector<CompileRequest> requests;
  requests.reserve(units.size());
  for (const Unit& unit : units) {
    const auto* targets = drivers_.opened(driver_kind(unit));
    if (targets == nullptr || !*targets) continue;
    for (const Target& target : **targets) requests.push_back({unit, effective_target(unit, target), true});
  }
  return requests;
}

void SessionRequests::request(const Units& units) {
  Units ready;
  bool open = false;
  for (const Unit& unit : units) {
    if (!drivers_.has_device(driver_kind(unit))) continue;
    const MutexLock lock(mutex_);
    if (drivers_.opened(driver_kind(unit)) != nullptr) {
      ready.push_back(unit);
    } else if (pending_units_.add(unit)) {
      drivers_to_open_.insert(driver_kind(unit));
      open = true;
    }
  }
  if (open) (void)driver_opener_.submit(1);
  if (ready.empty()) return;
  {
    const MutexLock lock(mutex_);
    submit_pending();
  }
  engine_.request(requests_for_devices(ready));
}

void SessionRequests::request(const Units& units, const Target& target) {
  engine_.request(requests_for_target(units, target));
}

void SessionRequests::renumber() { number_.store(++numbers_assigned, std::memory_order_relaxed); }

void SessionRequests::cancel(const Units& units) {
  for (const Unit& unit : units) (void)UnitAccess::identity(unit);  // hashes outside the lock
  {
    const MutexLock lock(mutex_);
    for (const Unit& unit : units) pending_units_.remove_equal(unit);
  }
  engine_.cancel(requests_for_devices(units));
  renumber();
}

void SessionRequests::cancel(const Units& units, const Target& target) {
  engine_.cancel(requests_for_target(units, target));
  renumber();
}

void SessionRequests::refresh(const Units& units) {
  // The engine first: no thread can then publish an old result, and the next call gets a new one.
  engine_.refresh(units);
  handles_.begin_epoch();
  for (const Unit& unit : units) {
    for (const auto& handle : handles_.of_unit(UnitAccess::identity(unit))) handle->refresh();
  }
  renumber();
}

void SessionRequests::release(const Units& units) {
  for (const Unit& unit : units) (void)UnitAccess::identity(unit);
  {
    const MutexLock lock(mutex_);
    for (const Unit& unit : units) pending_units_.remove_equal(unit);
  }
  std::vector<ArtifactKey> keys = engine_.release(units);
  const std::size_t released = keys.size();
  for (const Unit& unit : units) {
    // The engine does not report which keys belong to this unit. The other combinations have no module.
    for (std::size_t i = 0; i < released; ++i) keys.push_back(module_key(unit, keys[i]));
    for (const auto& handle : handles_.take_unit(UnitAccess::identity(unit))) {
      for (const ArtifactKey& key : handle->keys()) keys.push_back(key);
    }
  }
  for (const auto& [kind, driver] : drivers_.all()) {
    for (const ArtifactKey& key : keys) driver->unload(key);
  }
  renumber();
}

void SessionRequests::retry(const Units& units) { retry(requests_for_devices(units)); }

void SessionRequests::retry(const Units& units, const Target& target) { retry(requests_for_target(units, target)); }

void SessionRequests::retry(const std::vector<CompileRequest>& requests) {
  engine_.retry(requests);
  engine_.request(requests);
}

SessionStatus SessionRequests::status() const {
  const MutexLock lock(mutex_);
  SessionStatus status = engine_.status();
  for (const auto& [number, unit] : pending_units_.units()) {
    status.units.push_back({unit.label(), unit.kind(), "", UnitStatus::State::Queued});
  }
  status.submitted += pending_units_.size();
  status.pending += pending_units_.size();
  return status;
}

StatusSnapshot SessionRequests::snapshot(std::size_t maximum) const {
  const MutexLock lock(mutex_);
  StatusSnapshot snapshot = engine_.status_snapshot(maximum);
  snapshot.totals.submitted += pending_units_.size();
  snapshot.totals.pending += pending_units_.size();
  for (const auto& [number, unit] : pending_units_.units()) {
    if (snapshot.units.size() >= maximum) break;
    snapshot.units.push_back({{unit.label(), unit.kind(), "", UnitStatus::State::Queued}});
  }
  return snapshot;
}

}  // namespace kiln
