// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include <kiln/stream.hpp>

#include "base/clock.hpp"
#include "events/event_emitter.hpp"
#include "runtime/dispatch/dispatch.hpp"

namespace kiln::runtime {
namespace {

OperationContext named(OperationContext work, const char* stage) {
  work.stage = stage;
  return work;
}

}  // namespace

struct Stage::State {
  State(Dispatch::State& its_dispatch, const char* name, const Stream* its_stream)
      : dispatch(its_dispatch), work(named(its_dispatch.work(), name)), start(system_clock().steady()), scope(work) {
    if (its_stream != nullptr) stream = *its_stream;
  }

  Dispatch::State& dispatch;
  const OperationContext work;
  const std::chrono::nanoseconds start;
  std::optional<Stream> stream;
  bool host = false;
  OperationScope scope;
};

Stage::Stage(Dispatch& dispatch, const char* name, const Stream* stream)
    : state_(std::make_unique<State>(*dispatch.state_, name, stream)) {}

void Stage::on_host() { state_->host = true; }

Stage::~Stage() {
  Dispatch::State& dispatch = state_->dispatch;
  Runtime::State& runtime = *dispatch.runtime.state();
  const bool launched = state_->scope.launches() > 0;
  if (state_->stream && launched && runtime.requests().time_stages.value) {
    const OperationScope traced(OperationContext::with_purpose(Purpose::Trace));
    // Ignore an error here: the next use of the stream fails with the same error and can report it.
    (void)state_->stream->synchronize();
  }
  const double ms = milliseconds_since(system_clock(), state_->start);
  const Backend backend = dispatch.frame.decision.selected;
  const char* where = on_device(backend) && launched && !state_->host ? to_string(backend) : "host";
  dispatch.frame.add({state_->work.operation, state_->work.stage, where, ms});
  const EventCallback emit = runtime.session.event_callback();
  if (!emit) return;
  Event event = Runtime::State::event_of(events::kStageFinished, dispatch.operation.name(), dispatch.frame.decision);
  event.context = state_->work;
  event.message.clear();
  event.origin.clear();
  event.selected = where;
  event.ms = ms;
  if (state_->stream) event.stream = event_stream(state_->stream->native());
  emit(event);
}

struct Transfer::State {
  State(const Runtime& its_runtime, Purpose its_purpose)
      : runtime(its_runtime), purpose(its_purpose), start(system_clock().steady()),
        scope(OperationContext::with_purpose(its_purpose)) {}

  const Runtime runtime;
  const Purpose purpose;
  const std::chrono::nanoseconds start;
  const OperationScope scope;
};

Transfer::Transfer(Runtime& runtime, Purpose purpose) : state_(std::make_unique<State>(runtime, purpose)) {}

Transfer::~Transfer() {
  if (state_->purpose != Purpose::Materialize) return;
  const EventCallback emit = state_->runtime.session().event_callback();
  if (!emit) return;
  Event event = Event::of(events::kMaterialized);
  event.bytes = bytes_;
  event.ms = milliseconds_since(system_clock(), state_->start);
  event.context = *OperationScope::current();
  emit(event);
}

}  // namespace kiln::runtime
