#include "session/session_impl.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "backends/cuda/cuda_device.hpp"
#include "backends/opencl/opencl_device.hpp"
#include "backends/traced_device.hpp"
#include "base/catch_to_error.hpp"
#include "base/error.hpp"
#include "base/process/environment.hpp"
#include "session/device_presence.hpp"

namespace kiln {
namespace {

std::atomic<std::uint64_t> cores_made{0};

// Ignores configuration files, because this runs before they are opened: a file cannot enable the trace.
bool is_set(const SessionOptions& options, const char* setting, const char* variable) {
  const auto value = environment_variable(variable);
  return (value && !value->empty()) || options.settings.count(setting) != 0;
}

EventEmitter emitter_for(const SessionOptions& options, std::shared_ptr<EventSink> trace,
                         std::shared_ptr<EventSink> metrics) {
  return EventEmitter(options.on_event).with_sink(std::move(trace)).with_sink(std::move(metrics));
}

// Cores that a forked child inherited. They are not destroyed: their threads do not exist in the child, their locks may
// be held, and their work belongs to the parent. Kept reachable for leak checkers.
std::atomic<SessionImpl*> abandoned{nullptr};

std::vector<CompileRequest> requests_for_target(const Units& units, const Target& target) {
  std::vector<CompileRequest> requests;
  requests.reserve(units.size());
  for (const Unit& unit : units) requests.push_back({unit, effective_target(unit, target)});
  return requests;
}

}  // namespace

void SessionImpl::abandon() {
  next_abandoned_ = abandoned.load(std::memory_order_acquire);
  while (!abandoned.compare_exchange_weak(next_abandoned_, this, std::memory_order_acq_rel)) {
  }
}

Session::State::~State() {
  SessionImpl* core = current.load(std::memory_order_acquire);
  if (core == nullptr) return;
  if (core->generation() == fork_generation()) {
    delete core;
  } else {
    core->abandon();
  }
}

SessionImpl& Session::State::impl() {
  SessionImpl* seen = current.load(std::memory_order_acquire);
  while (seen == nullptr || seen->generation() != fork_generation()) {
    auto fresh = std::make_unique<SessionImpl>(options, *this);
    if (!current.compare_exchange_strong(seen, fresh.get(), std::memory_order_acq_rel)) continue;
    if (seen != nullptr) seen->abandon();
    return *fresh.release();
  }
  return *seen;
}

SessionImpl::SessionImpl(const SessionOptions& options, Session::State& session)
    : options_(options), session_(session), number_(++cores_made), generation_(fork_generation()),
      trace_(is_set(options, "trace", "KILN_TRACE") ? std::make_shared<TraceWriter>() : nullptr),
      metrics_(options.collect_metrics ? std::make_shared<Metrics>() : nullptr),
      emitter_(emitter_for(options, trace_, metrics_)) {
  Engine::Callbacks params;
  params.find_prebuilt = [this](const CompileRequest& request, std::uint64_t flow) {
    status_writer_->on_work_started(
        components().config());  // here and not in `lookup`, which runs on the caller's time
    return find_in_bundles(request, flow);
  };
  params.recipe = [this](const CompileRequest& request) { return components().recipe(request.unit, request.target); };
  params.resolve = [this](const CompileRequest& request, const Recipe& recipe) { return resolve(request, recipe); };
  params.lookup = [this](const CompileRequest& request, std::uint64_t flow) { return lookup(request, flow); };
  params.inputs_changed = [this](const Recipe& recipe) {
    const auto now = components().recipe(recipe.unit, recipe.target);
    if (!now || now->request_key() != recipe.request_key()) return true;
    const auto compiler = components().compiler(recipe.unit, recipe.target);
    return compiler.ok() && (*compiler)->should_retry(recipe);
  };
  params.is_current = [this](const CompileRequest& request, const ResolveResult& answer) {
    return is_current(request, answer);
  };
  params.interrupt = [this] {
    if (Components* made = created_components_.load(std::memory_order_acquire)) made->interrupt();
  };
  params.emitter = emitter_;
  engine_ = std::make_unique<Engine>(std::move(params));
  driver_opener_ =
      std::make_unique<ThreadPool>(ThreadPool::Options{"kiln-open", 0, 1}, [this] { open_requested_drivers(); });
  status_writer_ = std::make_unique<StatusWriter>(StatusWriter::Params{
      [this](std::size_t maximum) { return snapshot(maximum); },
      [this](const Error& error) {
        // An unusable default directory is not reported, because the user did not choose it.
        if (components().config().status_dir.empty()) return;
        emitter_.emit(Event::Kind::ConfigWarning, "status.dir", "status.dir is not used: " + error.message);
      }});
  add_process_listener(*this);
}

SessionImpl::~SessionImpl() {
  remove_process_listener(*this);
  at_exit();
}

void SessionImpl::at_exit() {
  status_writer_->stop();
  if (!ThreadPool::is_pool_thread()) driver_opener_->stop();
  engine_->stop();
  if (Components* made = created_components_.load(std::memory_order_acquire)) ignore_failures([&] { made->finish(); });
  ignore_failures([&] { (void)write_trace(); });
}

Components& SessionImpl::components() {
  components_once_.call([this] {
    components_ = std::make_unique<Components>(Config::load(options_, emitter_), emitter_, options_.trust);
    created_components_.store(components_.get(), std::memory_order_release);
  });
  return *components_;
}

bool SessionImpl::has_device(const std::string& kind) {
  const MutexLock lock(mutex_);
  const auto known = present_.find(kind);
  if (known != present_.end()) return known->second;
  const bool present = (kind == "cuda" && is_set(options_, "driver", "KILN_DRIVER")) ||
                       (kind == "opencl" && options_.opencl.context != nullptr) || is_device_present(kind);
  present_[kind] = present;
  if (!present) emitter_.emit(Event::Kind::NoDevice, kind, "there is no device for units of kind " + kind);
  return present;
}

// Returns null for kinds that no driver loads.
DriverBackend* SessionImpl::backend(const std::string& kind) {
  std::string driver;
  if (kind == "cuda") driver = components().config().driver;
  const MutexLock lock(mutex_);
  std::unique_ptr<DriverBackend>& backend = backends_[kind];
  if (backend == nullptr) backend = make_backend(kind, driver);
  return backend.get();
}

std::unique_ptr<DriverBackend> SessionImpl::make_backend(const std::string& kind, const std::string& driver) {
  std::unique_ptr<Device> device;
  std::vector<std::unique_ptr<ArtifactLoader>> loaders;
  const bool meant = options_.allocator.kind.empty() || options_.allocator.kind == kind;
  const Allocator allocator = meant ? options_.allocator : Allocator{};
  if (kind == "cuda") {
    device = std::make_unique<CudaDevice>(CudaDevice::Options{driver, allocator});
    loaders.push_back(std::make_unique<CcclLoader>(driver, [this] { return cccl_library_paths(); }));
  } else if (kind == "opencl") {
    device = std::make_unique<OpenClDevice>(OpenClDevice::Options{static_cast<cl_context>(options_.opencl.context),
                                                                  static_cast<cl_device_id>(options_.opencl.device),
                                                                  allocator});
  }
  if (device == nullptr) return nullptr;
  if (emitter_) device = std::make_unique<TracedDevice>(std::move(device), emitter_);
  return std::make_unique<DriverBackend>(std::move(device), std::move(loaders));
}

// Returns the CCCL library and the compilers that it was linked with: those that kiln's CCCL compiler found, or the
// system's libraries of these names if that compiler is not available.
Result<CcclLoader::LibraryPaths> SessionImpl::cccl_library_paths() {
  auto library = choose_cccl(components().config().cccl);
  if (!library) return std::move(library).error();
  CcclLoader::LibraryPaths home{std::move(*library), {}};
  const auto compiler = components().compiler(Unit::of_kind("cccl", "", ""), Target{"sm_80", Form::Cccl});
  if (compiler) {
    if (const auto identity = (*compiler)->identity()) home.requirements = identity->libraries;
  }
  // Excludes the stub of the driver, which is for compiling only: the real driver is open.
  std::erase_if(home.requirements, [](const std::string& path) {
    return path.compare(path.rfind('/') + 1, std::string_view("libcuda.so").size(), "libcuda.so") == 0;
  });
  return home;
}

Result<DriverBackend*> SessionImpl::open(const std::string& kind, std::chrono::nanoseconds timeout) {
  {
    const MutexLock lock(mutex_);
    if (const auto* targets = opened(kind)) {
      submit_pending();
      if (!*targets) return targets->error();
      return backends_.at(kind).get();
    }
  }
  DriverBackend* const opening = backend(kind);
  if (opening == nullptr) return make_error(Code::Unsupported, "no driver loads units of kind '" + kind + "'");
  if (timeout != kForever) {
    // Opening a driver cannot be interrupted, so a caller with a timeout lets another thread open it.
    const Deadline deadline(system_clock(), timeout);
    const MutexLock lock(mutex_);
    drivers_to_open_.insert(kind);
    if (driver_opener_->submit(1)) {
      while (opening->opened() == nullptr) {
        if (deadline.remaining() == std::chrono::nanoseconds(0)) {
          return make_error(Code::TimedOut, "the driver for units of kind " + kind + " is still being opened");
        }
        system_clock().wait(opened_, mutex_, deadline.remaining());
      }
    }
  }
  const Result<std::vector<Target>>& targets = opening->open();
  const MutexLock lock(mutex_);
  submit_pending();
  if (!targets) return targets.error();
  return opening;
}

// Opens the requested drivers and submits the units that waited for them. Runs on the opener's thread.
void SessionImpl::open_requested_drivers() {
  std::unordered_set<std::string> kinds;
  {
    const MutexLock lock(mutex_);
    kinds.swap(drivers_to_open_);
  }
  for (const std::string& kind : kinds) {
    DriverBackend* const opening = backend(kind);
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
void SessionImpl::submit_pending() {
  if (pending_units_.empty()) return;
  std::set<std::string> kinds;
  for (const auto& [kind, driver] : backends_) {
    if (opened(kind) != nullptr) kinds.insert(kind);
  }
  engine_->request(requests_for_devices(pending_units_.of_kinds(kinds)));
  pending_units_.remove_kinds(kinds);
}

const Result<std::vector<Target>>* SessionImpl::opened(const std::string& kind) const {
  const auto known = backends_.find(kind);
  return known != backends_.end() && known->second != nullptr ? known->second->opened() : nullptr;
}

// Returns one request for each unit and each target of its driver's devices.
std::vector<CompileRequest> SessionImpl::requests_for_devices(const Units& units) const {
  std::vector<CompileRequest> requests;
  requests.reserve(units.size());
  for (const Unit& unit : units) {
    const auto* targets = opened(driver_kind(unit));
    if (targets == nullptr || !*targets) continue;
    for (const Target& target : **targets) requests.push_back({unit, effective_target(unit, target), true});
  }
  return requests;
}

void SessionImpl::request(const Units& units) {
  Units ready;
  bool open = false;
  for (const Unit& unit : units) {
    if (!has_device(driver_kind(unit))) continue;
    const MutexLock lock(mutex_);
    if (opened(driver_kind(unit)) != nullptr) {
      ready.push_back(unit);
    } else if (pending_units_.add(unit)) {
      drivers_to_open_.insert(driver_kind(unit));
      open = true;
    }
  }
  if (open) (void)driver_opener_->submit(1);
  if (ready.empty()) return;
  std::vector<CompileRequest> requests;
  {
    const MutexLock lock(mutex_);
    submit_pending();
    requests = requests_for_devices(ready);
  }
  engine_->request(requests);
}

void SessionImpl::request(const Units& units, const Target& target) {
  engine_->request(requests_for_target(units, target));
}

void SessionImpl::declare(const Units& units) {
  if (!options_.record_undeclared) return;
  const MutexLock lock(mutex_);
  for (const Unit& unit : units) declared_.insert(unit.identity());
}

void SessionImpl::renumber() { number_.store(++cores_made, std::memory_order_relaxed); }

void SessionImpl::cancel(const Units& units) {
  for (const Unit& unit : units) (void)unit.identity();  // hashes outside the lock
  std::vector<CompileRequest> requests;
  {
    const MutexLock lock(mutex_);
    for (const Unit& unit : units) pending_units_.remove_equal(unit);
    requests = requests_for_devices(units);
  }
  engine_->cancel(requests);
  renumber();
}

void SessionImpl::cancel(const Units& units, const Target& target) {
  engine_->cancel(requests_for_target(units, target));
  renumber();
}

void SessionImpl::refresh(const Units& units) {
  // The engine first: no thread can then publish an old result, and the next call gets a new one.
  engine_->refresh(units);
  handles_.begin_epoch();
  for (const Unit& unit : units) {
    for (const auto& handle : handles_.of_unit(unit.identity())) handle->refresh();
  }
  renumber();
}

void SessionImpl::release(const Units& units) {
  for (const Unit& unit : units) (void)unit.identity();
  std::vector<DriverBackend*> drivers;
  {
    const MutexLock lock(mutex_);
    for (const Unit& unit : units) pending_units_.remove_equal(unit);
    for (const auto& [kind, driver] : backends_) {
      if (driver != nullptr) drivers.push_back(driver.get());
    }
  }
  std::vector<ArtifactKey> keys = engine_->release(units);
  const std::size_t released = keys.size();
  for (const Unit& unit : units) {
    // The engine does not report which keys belong to this unit. The other combinations have no module.
    for (std::size_t i = 0; i < released; ++i) keys.push_back(module_key(unit, keys[i]));
    for (const auto& handle : handles_.take_unit(unit.identity())) {
      for (const ArtifactKey& key : handle->keys()) keys.push_back(key);
    }
  }
  for (DriverBackend* driver : drivers) {
    for (const ArtifactKey& key : keys) driver->unload(key);
  }
  renumber();
}

void SessionImpl::retry(const Units& units) {
  std::vector<CompileRequest> requests;
  {
    const MutexLock lock(mutex_);
    requests = requests_for_devices(units);
  }
  retry(requests);
}

void SessionImpl::retry(const Units& units, const Target& target) { retry(requests_for_target(units, target)); }

void SessionImpl::retry(const std::vector<CompileRequest>& requests) {
  engine_->retry(requests);
  engine_->request(requests);
}

SessionStatus SessionImpl::status() const {
  const MutexLock lock(mutex_);
  SessionStatus status = engine_->status();
  for (const auto& [number, unit] : pending_units_.units()) {
    status.units.push_back({unit.label(), unit.kind(), "", UnitStatus::State::Queued});
  }
  status.submitted += pending_units_.size();
  status.pending += pending_units_.size();
  return status;
}

StatusSnapshot SessionImpl::snapshot(std::size_t maximum) const {
  const MutexLock lock(mutex_);
  StatusSnapshot snapshot = engine_->status_snapshot(maximum);
  snapshot.totals.submitted += pending_units_.size();
  snapshot.totals.pending += pending_units_.size();
  for (const auto& [number, unit] : pending_units_.units()) {
    if (snapshot.units.size() >= maximum) break;
    snapshot.units.push_back({{unit.label(), unit.kind(), "", UnitStatus::State::Queued}});
  }
  return snapshot;
}

std::string SessionImpl::metrics() const {
  static const Metrics nothing;
  return (metrics_ != nullptr ? *metrics_ : nothing).text(status());
}

Status SessionImpl::write_trace() {
  if (trace_ == nullptr) return {};
  return trace_->write(components().config().trace);
}

}  // namespace kiln
