// SPDX-License-Identifier: Apache-2.0
#include "runtime/dispatch/dispatch.hpp"

#include <utility>

#include "base/clock.hpp"

namespace kiln::runtime {
namespace {

// Returns true for errors that the caller caused. The CPU variant is not tried after them, because it would fail in the
// same way or is not wanted.
bool is_callers(Code code) {
  return code == Code::InvalidArgument || code == Code::Cancelled || code == Code::Capturing;
}

}  // namespace

Dispatch::State::State(const Runtime& its_runtime, const Operation& its_operation, const DispatchRequest& its_request,
                       Decision its_decision)
    : runtime(its_runtime), operation(its_operation), request(its_request), decided(its_decision.selected),
      number(OperationContext::next_id()), start(system_clock().steady()),
      frame(*runtime.state(), its_operation.name(), std::move(its_decision)), scope(work()) {}

OperationContext Dispatch::State::work() const {
  OperationContext made;
  made.operation = operation.name();
  made.dispatch = number;
  made.workflow = frame.decision.id;
  made.rows = request.rows;
  made.residency = request.residency;
  return made;
}

Dispatch::State::~State() {
  Runtime::State& state = *runtime.state();
  const Decision& decision = frame.decision;
  const bool launched = scope.launches() > 0;
  const bool on_device = runtime::on_device(decision.selected) && launched;
  ++state.dispatches;
  if (on_device) ++state.on_device;
  if (on_device && !decision.cpu_device) ++state.on_gpu;
  const EventCallback emit = state.session.event_callback();
  if (!emit) return;
  Event event = Runtime::State::event_of(events::kDispatched, operation.name(), decision);
  event.context = work();
  event.origin = to_string(decided);
  event.selected = to_string(on_device ? decision.selected : Backend::Cpu);
  event.cpu_device = on_device && decision.cpu_device;
  event.ms = milliseconds_since(system_clock(), start);
  Runtime::State::add_precision(event, decision);
  if (runtime::on_device(decision.selected) && !launched) event.message += "; no kernel was launched";
  emit(event);
}

Dispatch::Dispatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
Dispatch::Dispatch(Dispatch&& other) noexcept = default;
Dispatch::~Dispatch() = default;

Result<Dispatch> Dispatch::begin(Runtime& runtime, const Operation& operation, const DispatchRequest& request) {
  auto decision = runtime.decide(operation, request);
  if (!decision) return std::move(decision).error();
  return Dispatch(std::make_unique<State>(runtime, operation, request, *std::move(decision)));
}

const Decision& Dispatch::decision() const { return state_->frame.decision; }
Runtime& Dispatch::runtime() const { return state_->runtime; }

bool Dispatch::fall_back(const Error& error) {
  Decision& decision = state_->frame.decision;
  if (!on_device(decision.selected) || decision.requested != Mode::Auto) return false;
  if (state_->request.residency == Residency::Device || is_callers(error.code)) return false;
  Runtime::State& runtime = *state_->runtime.state();
  const Variant* cpu = variant_of(state_->operation, Backend::Cpu, 0, runtime.requests());
  if (cpu == nullptr) return false;
  const std::string text = std::string("the variant for ") + to_string(decision.selected) + " failed: " + error.message;
  Event event = Runtime::State::event_of(events::kFellBack, state_->operation.name(), decision);
  decision.variant = cpu;
  decision.selected = Backend::Cpu;
  decision.device.clear();
  decision.fp64_ratio = 0;
  decision.precision = cpu->precision;
  decision.planned_precision = Precision::Fp64;
  decision.reason = Reason::Failed;
  decision.fallback = true;
  decision.explanation = text;
  decision.warm = runtime.knowledge.is_warm(runtime.session, cpu->requirements);
  ++runtime.fallbacks;
  event.selected = to_string(Backend::Cpu);
  event.message = text;
  event.warm = decision.warm;
  event.context = state_->work();
  if (const EventCallback emit = runtime.session.event_callback()) emit(event);
  return true;
}

}  // namespace kiln::runtime
