#include <optional>

#include "base/clock.hpp"
#include "runtime/dispatch.hpp"

namespace kiln::runtime {
namespace {

Work named(Work work, const char* stage) {
  work.stage = stage;
  return work;
}

// What the thread does anyway, for this purpose.
Work meant(Purpose purpose) {
  const Work* current = WorkScope::current();
  Work work = current != nullptr ? *current : Work{};
  work.purpose = purpose;
  return work;
}

}  // namespace

struct Stage::State {
  State(Dispatch::State& its_dispatch, const char* name, const Stream* its_stream)
      : dispatch(its_dispatch), work(named(its_dispatch.work(), name)), start(system_clock().steady()), scope(work) {
    if (its_stream != nullptr) stream = *its_stream;
  }

  Dispatch::State& dispatch;
  const Work work;
  const std::chrono::nanoseconds start;
  std::optional<Stream> stream;
  bool host = false;
  WorkScope scope;
};

Stage::Stage(Dispatch& dispatch, const char* name, const Stream* stream)
    : state_(std::make_unique<State>(*dispatch.state_, name, stream)) {}

void Stage::on_host() { state_->host = true; }

Stage::~Stage() {
  Dispatch::State& dispatch = state_->dispatch;
  Runtime::State& runtime = *dispatch.runtime.state();
  const bool launched = state_->scope.launches() > 0;
  if (state_->stream && launched && runtime.wishes().time_stages) {
    const WorkScope traced(meant(Purpose::Trace));
    // What it fails with the next use of the stream fails with too, where somebody can say so.
    (void)state_->stream->synchronise();
  }
  const double ms = milliseconds_since(system_clock(), state_->start);
  const Backend backend = dispatch.frame.decision.selected;
  const char* where = on_device(backend) && launched && !state_->host ? to_string(backend) : "host";
  dispatch.frame.add({state_->work.operation, state_->work.stage, where, ms});
  const EventCallback tell = runtime.session.listeners();
  if (!tell) return;
  Event event = Runtime::State::event_of(Event::Kind::StageRan, dispatch.operation.name(), dispatch.frame.decision);
  event.work = state_->work;
  event.message.clear();
  event.origin.clear();
  event.selected = where;
  event.ms = ms;
  if (state_->stream) event.stream = reinterpret_cast<std::uintptr_t>(state_->stream->native());
  tell(event);
}

struct Transfer::State {
  State(const Runtime& its_runtime, Purpose its_purpose)
      : runtime(its_runtime), purpose(its_purpose), start(system_clock().steady()), scope(meant(its_purpose)) {}

  const Runtime runtime;
  const Purpose purpose;
  const std::chrono::nanoseconds start;
  const WorkScope scope;
};

Transfer::Transfer(Runtime& runtime, Purpose purpose) : state_(std::make_unique<State>(runtime, purpose)) {}

Transfer::~Transfer() {
  if (state_->purpose != Purpose::Materialise) return;
  const EventCallback tell = state_->runtime.session().listeners();
  if (!tell) return;
  Event event;
  event.kind = Event::Kind::Materialised;
  event.bytes = bytes_;
  event.ms = milliseconds_since(system_clock(), state_->start);
  event.work = *WorkScope::current();
  tell(event);
}

}  // namespace kiln::runtime
