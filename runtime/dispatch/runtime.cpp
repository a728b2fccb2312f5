#include <kiln/runtime/runtime.hpp>

#include <algorithm>
#include <utility>

#include "runtime/dispatch/runtime_state.hpp"

namespace kiln::runtime {

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

Runtime::State::State(Session its_session, RuntimeOptions its_options)
    : session(std::move(its_session)), options(std::move(its_options)), knowledge(options), mode_(options.mode),
      rewrites_(options.rewrites), allow_cpu_device_(options.allow_cpu_device), precision_(options.precision) {}

EnvironmentSettings Runtime::State::environment() {
  std::uint64_t generation = 0;
  {
    const MutexLock lock(mutex);
    if (environment_) return *environment_;
    generation = generation_;
  }
  EnvironmentSettings read = EnvironmentSettings::read();
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
  const EnvironmentSettings said = environment();
  const MutexLock lock(mutex);
  EffectiveSettings made;
  made.mode = mode_.value_or(said.mode.value_or(Mode::Auto));
  made.source = mode_ ? ModeSource::Override : said.mode ? ModeSource::Environment : ModeSource::Default;
  made.rewrites = rewrites_.value_or(said.rewrites.value_or(true));
  made.allow_cpu_device = allow_cpu_device_.value_or(said.allow_cpu_device.value_or(false));
  made.precision = precision_.value_or(said.precision.value_or(PrecisionPolicy::Auto));
  made.time_stages = options.time_stages || said.time_stages;
  made.generation = generation_;
  return made;
}

void Runtime::State::set_mode(std::optional<Mode> to) {
  {
    const MutexLock lock(mutex);
    mode_ = to;
    reset();
  }
  knowledge.invalidate();
}

void Runtime::State::set_rewrites(std::optional<bool> to) {
  const MutexLock lock(mutex);
  rewrites_ = to;
  reset();
}

void Runtime::State::set_allow_cpu_device(std::optional<bool> to) {
  const MutexLock lock(mutex);
  allow_cpu_device_ = to;
  reset();
}

void Runtime::State::set_precision(std::optional<PrecisionPolicy> to) {
  const MutexLock lock(mutex);
  precision_ = to;
  reset();
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

Mode Runtime::mode() const { return state_->requests().mode; }
ModeSource Runtime::mode_source() const { return state_->requests().source; }
void Runtime::set_mode(std::optional<Mode> mode) { state_->set_mode(mode); }
bool Runtime::rewrites() const { return state_->requests().rewrites; }
void Runtime::set_rewrites(std::optional<bool> rewrites) { state_->set_rewrites(rewrites); }

bool Runtime::allow_cpu_device() const { return state_->requests().allow_cpu_device; }
void Runtime::set_allow_cpu_device(std::optional<bool> allow) { state_->set_allow_cpu_device(allow); }
PrecisionPolicy Runtime::precision() const { return state_->requests().precision; }
void Runtime::set_precision(std::optional<PrecisionPolicy> precision) { state_->set_precision(precision); }

void Runtime::request(Backend backend, const Requirements& requirements) {
  const EffectiveSettings settings = state_->requests();
  const std::vector<Backend>& devices = state_->options.devices;
  if (settings.mode == Mode::Cpu || std::find(devices.begin(), devices.end(), backend) == devices.end()) return;
  if (!settings.allow_cpu_device && session().has_only_cpu_devices(device_backend(backend))) return;
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
  event.selected = rewrite.to->name();
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
