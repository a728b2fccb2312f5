#include <kiln/runtime/runtime.hpp>

#include <utility>

#include "runtime/dispatch/runtime_state.hpp"

namespace kiln::runtime {

Runtime::State::State(Session its_session, RuntimeOptions its_options)
    : session(std::move(its_session)), options(std::move(its_options)), knowledge(options), mode_(options.mode),
      rewrites_(options.rewrites) {}

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
  return {state_->decisions.load(), state_->dispatches.load(), state_->on_device.load(), state_->fallbacks.load()};
}

std::vector<StageTime> Runtime::last_stages() const {
  const MutexLock lock(state_->mutex);
  return state_->last_stages;
}

}  // namespace kiln::runtime
