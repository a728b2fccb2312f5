// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/runtime.hpp>

#include <algorithm>
#include <utility>

#include "runtime/dispatch/runtime_state.hpp"

namespace kiln::runtime {

namespace {

// The result of a rewrite that runs no operation, in its event.
constexpr const char* kInputUnchanged = "input";

bool lists_cpu(const RuntimeOptions& options) {
  return std::find(options.devices.begin(), options.devices.end(), Backend::Cpu) != options.devices.end();
}

RuntimeOptions without_cpu(RuntimeOptions options) {
  std::vector<Backend>& devices = options.devices;
  devices.erase(std::remove(devices.begin(), devices.end(), Backend::Cpu), devices.end());
  return options;
}

}  // namespace

Runtime::State::State(Session its_session, RuntimeOptions its_options)
    : session(std::move(its_session)), cpu_is_listed(lists_cpu(its_options)),
      options(without_cpu(std::move(its_options))),
      knowledge(options), overrides_{options.mode,          options.rewrites,
                                     options.deterministic, options.allow_cpu_device,
                                     options.precision,     options.time_stages} {}

EnvironmentSettings Runtime::State::environment() {
  std::uint64_t generation = 0;
  {
    const MutexLock lock(mutex);
    if (environment_) return *environment_;
    generation = generation_;
  }
  EnvironmentSettings read = EnvironmentSettings::read();
  if (cpu_is_listed) {
    read.warnings.push_back("RuntimeOptions::devices: cpu is ignored: it is not a device; use cuda or opencl");
  }
  {
    const MutexLock lock(mutex);
    if (generation == generation_) environment_ = read;
  }
  for (const std::string& warning : read.warnings) {
    Event event;
    event.kind = Event::Kind::ConfigWarning;
    event.message = warning;
    knowledge.warn(session, event);
  }
  return read;
}

EffectiveSettings Runtime::State::requests() {
  std::uint64_t generation = 0;
  {
    const MutexLock lock(mutex);
    generation = generation_;
  }
  const EnvironmentSettings said = environment();
  const MutexLock lock(mutex);
  EffectiveSettings made = EffectiveSettings::of(overrides_, said);
  made.generation = generation;  // of before the environment was read, which can be outdated by now
  return made;
}

void Runtime::State::reset() {
  environment_.reset();
  ++generation_;
  decision_cache_.clear();
}

Runtime::Runtime(Session session, RuntimeOptions options)
    : state_(std::make_shared<State>(std::move(session), std::move(options))) {}

Session& Runtime::session() const { return state_->session; }
const RuntimeOptions& Runtime::options() const { return state_->options; }

Mode Runtime::mode() const { return state_->requests().mode.value; }
SettingSource Runtime::mode_source() const { return state_->requests().mode.source; }
void Runtime::set_mode(std::optional<Mode> mode) {
  state_->set(&RequestedSettings::mode, mode);
  state_->knowledge.invalidate();
}
bool Runtime::rewrites() const { return state_->requests().rewrites.value; }
SettingSource Runtime::rewrites_source() const { return state_->requests().rewrites.source; }
void Runtime::set_rewrites(std::optional<bool> rewrites) { state_->set(&RequestedSettings::rewrites, rewrites); }
bool Runtime::deterministic() const { return state_->requests().deterministic.value; }
SettingSource Runtime::deterministic_source() const { return state_->requests().deterministic.source; }
void Runtime::set_deterministic(std::optional<bool> deterministic) {
  state_->set(&RequestedSettings::deterministic, deterministic);
}
bool Runtime::time_stages() const { return state_->requests().time_stages.value; }
SettingSource Runtime::time_stages_source() const { return state_->requests().time_stages.source; }
void Runtime::set_time_stages(std::optional<bool> time_stages) {
  state_->set(&RequestedSettings::time_stages, time_stages);
}

bool Runtime::allow_cpu_device() const { return state_->requests().allow_cpu_device.value; }
SettingSource Runtime::allow_cpu_device_source() const { return state_->requests().allow_cpu_device.source; }
void Runtime::set_allow_cpu_device(std::optional<bool> allow) {
  state_->set(&RequestedSettings::allow_cpu_device, allow);
}
PrecisionPolicy Runtime::precision() const { return state_->requests().precision.value; }
SettingSource Runtime::precision_source() const { return state_->requests().precision.source; }
void Runtime::set_precision(std::optional<PrecisionPolicy> precision) {
  state_->set(&RequestedSettings::precision, precision);
}

void Runtime::request(Backend backend, const Requirements& requirements) {
  const EffectiveSettings settings = state_->requests();
  const std::vector<Backend>& devices = state_->options.devices;
  if (settings.mode.value == Mode::Cpu || std::find(devices.begin(), devices.end(), backend) == devices.end()) return;
  if (!settings.allow_cpu_device.value && session().has_only_cpu_devices(device_backend(backend))) return;
  session().request(requirements);
}

Result<Decision> Runtime::decide(const Operation& operation, const DispatchRequest& request) {
  const Operation* const one = &operation;
  const DecisionScope* around = DecisionScope::current(*state_);
  return around != nullptr ? state_->inherit(*around, operation.name(), {&one, 1}, request)
                           : state_->decide(operation.name(), {&one, 1}, request);
}

bool Runtime::should_rewrite(const Rewrite& rewrite, std::uint64_t rows) {
  if (!rewrites()) return false;
  const EventCallback emit = state_->session.event_callback();
  if (!emit) return true;
  Event event = Event::of(events::kRewritten);
  event.requested = rewrite.from->name();
  event.selected = rewrite.to != nullptr ? rewrite.to->name() : kInputUnchanged;
  event.message = rewrite.name;
  if (const OperationContext* current = OperationScope::current()) event.context = *current;
  if (event.context.operation.empty()) event.context.operation = rewrite.from->name();
  event.context.rows = rows;
  emit(event);
  return true;
}

Runtime::Counts Runtime::counts() const {
  return {state_->decisions.load(), state_->dispatches.load(), state_->on_device.load(), state_->on_gpu.load(),
          state_->fallbacks.load()};
}

std::vector<StageTime> Runtime::last_stages() const {
  const MutexLock lock(state_->mutex);
  return state_->last_stages;
}

}  // namespace kiln::runtime
