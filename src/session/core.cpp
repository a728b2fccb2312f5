#include "session/core.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"
#include "device/cuda_device.hpp"
#include "device/observed_device.hpp"
#include "device/opencl_device.hpp"
#include "device/presence.hpp"

namespace kiln {
namespace {

std::atomic<std::uint64_t> cores_made{0};

// Before the configuration is loaded, since that opens files: what a file says of the trace comes too late.
bool is_set(const SessionOptions& options, const char* setting, const char* variable) {
  const auto value = environment_variable(variable);
  return (value && !value->empty()) || options.settings.count(setting) != 0;
}

Observer observer_for(const SessionOptions& options, std::shared_ptr<EventSink> trace,
                      std::shared_ptr<EventSink> metrics) {
  return Observer(options.on_event).with(std::move(trace)).with(std::move(metrics));
}

// Cores that a forked child inherited. They are not ended: their threads are not here, their locks may be locked, and
// what they do is the parent's. Kept reachable for leak checkers.
std::atomic<Core*> abandoned{nullptr};

std::vector<Order> orders_of(const Units& units, const Target& target) {
  std::vector<Order> orders;
  orders.reserve(units.size());
  for (const Unit& unit : units) orders.push_back({unit, fitted(unit, target)});
  return orders;
}

}  // namespace

void Core::abandon() {
  next_abandoned_ = abandoned.load(std::memory_order_acquire);
  while (!abandoned.compare_exchange_weak(next_abandoned_, this, std::memory_order_acq_rel)) {
  }
}

Session::State::~State() {
  Core* core = current.load(std::memory_order_acquire);
  if (core == nullptr) return;
  if (core->generation() == fork_generation()) {
    delete core;
  } else {
    core->abandon();
  }
}

Core& Session::State::core() {
  Core* seen = current.load(std::memory_order_acquire);
  while (seen == nullptr || seen->generation() != fork_generation()) {
    auto fresh = std::make_unique<Core>(options, *this);
    if (!current.compare_exchange_strong(seen, fresh.get(), std::memory_order_acq_rel)) continue;
    if (seen != nullptr) seen->abandon();
    return *fresh.release();
  }
  return *seen;
}

Core::Core(const SessionOptions& options, Session::State& session)
    : options_(options), session_(session), number_(++cores_made), generation_(fork_generation()),
      trace_(is_set(options, "trace", "KILN_TRACE") ? std::make_shared<TraceWriter>() : nullptr),
      metrics_(options.metrics ? std::make_shared<Metrics>() : nullptr),
      observer_(observer_for(options, trace_, metrics_)) {
  Engine::Parts parts;
  parts.serve = [this](const Order& order, std::uint64_t flow) {
    board_->touch(toolbox().config());  // here and not in `look`, which is on the caller's time
    return serve(order, flow);
  };
  parts.recipe = [this](const Order& order) { return toolbox().recipe(order.unit, order.target); };
  parts.resolve = [this](const Order& order, const Recipe& recipe) { return resolve(order, recipe); };
  parts.look = [this](const Order& order, std::uint64_t flow) { return look(order, flow); };
  parts.changed_since_failure = [this](const Recipe& recipe) {
    const auto now = toolbox().recipe(recipe.unit, recipe.target);
    if (!now || now->request_key() != recipe.request_key()) return true;
    const auto compiler = toolbox().compiler(recipe.unit, recipe.target);
    return compiler.ok() && (*compiler)->worth_another_try(recipe);
  };
  parts.interrupt = [this] {
    if (Toolbox* made = made_toolbox_.load(std::memory_order_acquire)) made->interrupt();
  };
  parts.observer = observer_;
  engine_ = std::make_unique<Engine>(std::move(parts));
  opener_ = std::make_unique<Pool>(Pool::Options{"kiln-open", 0, 1}, [this] { open_requested(); });
  board_ = std::make_unique<StatusBoard>(StatusBoard::Parts{
      [this](std::size_t most) { return glance(most); },
      [this](const Error& error) {
        // That the place which nobody chose cannot be used is nobody's concern.
        if (toolbox().config().status_dir.empty()) return;
        observer_.tell(Event::Kind::Configuration, "status.dir", "status.dir is not used: " + error.message);
      }});
  add_listener(*this);
}

Core::~Core() {
  remove_listener(*this);
  at_exit();
}

void Core::at_exit() {
  board_->stop();
  if (!Pool::on_a_thread()) opener_->stop();
  engine_->stop();
  if (Toolbox* made = made_toolbox_.load(std::memory_order_acquire)) attempt([&] { made->finish(); });
  attempt([&] { (void)write_trace(); });
}

void Core::in_child() {
  // No lock may be taken here. A driver does not survive a fork, so no kernel of the parent's may be handed out.
  handle_index_.for_each([](HandleState& handle) { handle.ready.store(nullptr, std::memory_order_release); });
}

Toolbox& Core::toolbox() {
  toolbox_once_.call([this] {
    toolbox_ = std::make_unique<Toolbox>(Config::load(options_, observer_), observer_, options_.trust);
    made_toolbox_.store(toolbox_.get(), std::memory_order_release);
  });
  return *toolbox_;
}

bool Core::present(const std::string& kind) {
  const MutexLock lock(mutex_);
  const auto known = present_.find(kind);
  if (known != present_.end()) return known->second;
  const bool present = (kind == "cuda" && is_set(options_, "driver", "KILN_DRIVER")) ||
                       (kind == "opencl" && options_.opencl.context != nullptr) || device_present(kind);
  present_[kind] = present;
  if (!present) observer_.tell(Event::Kind::NoDevice, kind, "there is no device for units of kind " + kind);
  return present;
}

// Null for kinds that no driver loads.
Backend* Core::backend(const std::string& kind) {
  std::string driver;
  if (kind == "cuda") driver = toolbox().config().driver;
  const MutexLock lock(mutex_);
  std::unique_ptr<Backend>& backend = backends_[kind];
  if (backend == nullptr) backend = make_backend(kind, driver);
  return backend.get();
}

std::unique_ptr<Backend> Core::make_backend(const std::string& kind, const std::string& driver) {
  std::unique_ptr<Device> device;
  std::vector<std::unique_ptr<Loader>> loaders;
  const bool meant = options_.allocator.kind.empty() || options_.allocator.kind == kind;
  const Allocator allocator = meant ? options_.allocator : Allocator{};
  if (kind == "cuda") {
    device = std::make_unique<CudaDevice>(CudaDevice::Options{driver, allocator});
    loaders.push_back(std::make_unique<CcclLoader>(driver, [this] { return cccl_home(); }));
  } else if (kind == "opencl") {
    device = std::make_unique<OpenClDevice>(OpenClDevice::Options{static_cast<cl_context>(options_.opencl.context),
                                                                  static_cast<cl_device_id>(options_.opencl.device),
                                                                  allocator});
  }
  if (device == nullptr) return nullptr;
  if (observer_) device = std::make_unique<ObservedDevice>(std::move(device), observer_);
  return std::make_unique<Backend>(std::move(device), std::move(loaders));
}

// The library, and beside it the compilers that it was linked with: those that its own compiler found, or whatever the
// system has under their names where that has nothing to say.
Result<CcclLoader::Home> Core::cccl_home() {
  auto library = choose_cccl(toolbox().config().cccl);
  if (!library) return std::move(library).error();
  CcclLoader::Home home{std::move(*library), {}};
  const auto compiler = toolbox().compiler(Unit::of_kind("cccl", "", ""), Target{"sm_80", Form::Cccl});
  if (compiler) {
    if (const auto identity = (*compiler)->identity()) home.needs = identity->libraries;
  }
  // Not the stub of the driver that serves for compiling: the driver is open.
  std::erase_if(home.needs, [](const std::string& path) {
    return path.compare(path.rfind('/') + 1, std::string_view("libcuda.so").size(), "libcuda.so") == 0;
  });
  return home;
}

Result<Backend*> Core::open(const std::string& kind, std::chrono::nanoseconds limit) {
  {
    const MutexLock lock(mutex_);
    if (const auto* targets = opened(kind)) {
      hand_on_waiting();
      if (!*targets) return targets->error();
      return backends_.at(kind).get();
    }
  }
  Backend* const opening = backend(kind);
  if (opening == nullptr) return failure(Code::Unsupported, "no driver of kiln's loads units of kind '" + kind + "'");
  if (limit != kForever) {
    // Opening a driver cannot be interrupted; whoever is in a hurry lets another thread do it.
    const Deadline deadline(system_clock(), limit);
    const MutexLock lock(mutex_);
    to_open_.insert(kind);
    if (opener_->add(1)) {
      while (opening->opened() == nullptr) {
        if (deadline.left() == std::chrono::nanoseconds(0)) {
          return failure(Code::TimedOut, "the driver for units of kind " + kind + " is still being opened");
        }
        system_clock().wait(opened_, mutex_, deadline.left());
      }
    }
  }
  const Result<std::vector<Target>>& targets = opening->open();
  const MutexLock lock(mutex_);
  hand_on_waiting();
  if (!targets) return targets.error();
  return opening;
}

// On the opener's thread: opens what is asked for, and hands on what waited for it.
void Core::open_requested() {
  std::unordered_set<std::string> kinds;
  {
    const MutexLock lock(mutex_);
    kinds.swap(to_open_);
  }
  for (const std::string& kind : kinds) {
    Backend* const opening = backend(kind);
    if (opening == nullptr) continue;
    if (const auto& targets = opening->open(); !targets) {
      observer_.tell(Event::Kind::NoDevice, kind, targets.error().message);
    }
    const MutexLock lock(mutex_);
    opened_.notify_all();
  }
  const MutexLock lock(mutex_);
  hand_on_waiting();
}

// Whoever first sees a driver open does, and under the lock: a unit is either here or with the engine, and never both.
void Core::hand_on_waiting() {
  if (waiting_.empty()) return;
  const auto is_due = [this](const Unit& unit) KILN_REQUIRES(mutex_) { return opened(driver_kind(unit)) != nullptr; };
  Units due;
  std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(due), is_due);
  engine_->request(orders_for(due));
  std::erase_if(waiting_, is_due);
  for (const Unit& unit : due) waiting_addresses_.erase(unit.address());
}

const Result<std::vector<Target>>* Core::opened(const std::string& kind) const {
  const auto known = backends_.find(kind);
  return known != backends_.end() && known->second != nullptr ? known->second->opened() : nullptr;
}

// One for each unit and each target of the devices that its driver has.
std::vector<Order> Core::orders_for(const Units& units) const {
  std::vector<Order> orders;
  orders.reserve(units.size());
  for (const Unit& unit : units) {
    const auto* targets = opened(driver_kind(unit));
    if (targets == nullptr || !*targets) continue;
    for (const Target& target : **targets) orders.push_back({unit, fitted(unit, target), true});
  }
  return orders;
}

void Core::request(const Units& units) {
  Units ready;
  bool open = false;
  for (const Unit& unit : units) {
    if (!present(driver_kind(unit))) continue;
    const MutexLock lock(mutex_);
    if (opened(driver_kind(unit)) != nullptr) {
      ready.push_back(unit);
    } else if (waiting_addresses_.insert(unit.address()).second) {
      waiting_.push_back(unit);
      to_open_.insert(driver_kind(unit));
      open = true;
    }
  }
  if (open) (void)opener_->add(1);
  if (ready.empty()) return;
  std::vector<Order> orders;
  {
    const MutexLock lock(mutex_);
    hand_on_waiting();
    orders = orders_for(ready);
  }
  engine_->request(orders);
}

void Core::request(const Units& units, const Target& target) { engine_->request(orders_of(units, target)); }

void Core::declare(const Units& units) {
  if (!options_.record_undeclared) return;
  const MutexLock lock(mutex_);
  for (const Unit& unit : units) declared_.insert(unit.identity());
}

void Core::cancel(const Units& units) {
  std::vector<Order> orders;
  {
    const MutexLock lock(mutex_);
    for (const Unit& unit : units) {
      const auto is_it = [&](const Unit& other) { return other.identity() == unit.identity(); };
      std::erase_if(waiting_, is_it);
      waiting_addresses_.erase(unit.address());
    }
    orders = orders_for(units);
  }
  engine_->cancel(orders);
}

void Core::cancel(const Units& units, const Target& target) { engine_->cancel(orders_of(units, target)); }

void Core::retry(const Units& units) {
  std::vector<Order> orders;
  {
    const MutexLock lock(mutex_);
    orders = orders_for(units);
  }
  retry(orders);
}

void Core::retry(const Units& units, const Target& target) { retry(orders_of(units, target)); }

void Core::retry(const std::vector<Order>& orders) {
  engine_->retry(orders);
  engine_->request(orders);
}

SessionStatus Core::status() const {
  const MutexLock lock(mutex_);
  SessionStatus status = engine_->status();
  for (const Unit& unit : waiting_) {
    status.units.push_back({unit.label(), unit.kind(), "", UnitStatus::State::Queued});
  }
  status.submitted += waiting_.size();
  status.pending += waiting_.size();
  return status;
}

Glance Core::glance(std::size_t most) const {
  const MutexLock lock(mutex_);
  Glance glance = engine_->glance(most);
  glance.sums.submitted += waiting_.size();
  glance.sums.pending += waiting_.size();
  for (const Unit& unit : waiting_) {
    if (glance.units.size() >= most) break;
    glance.units.push_back({{unit.label(), unit.kind(), "", UnitStatus::State::Queued}});
  }
  return glance;
}

std::string Core::metrics() const {
  static const Metrics nothing;
  return (metrics_ != nullptr ? *metrics_ : nothing).text(status());
}

Status Core::write_trace() {
  if (trace_ == nullptr) return {};
  return trace_->write(toolbox().config().trace);
}

}  // namespace kiln
