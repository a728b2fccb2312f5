#include <utility>

#include "base/error.hpp"
#include "runtime/dispatch/runtime_state.hpp"

namespace kiln::runtime {
namespace {

Decision placed(Decision decision, std::uint64_t rows) {
  decision.rows = rows;
  decision.explanation = std::to_string(rows) + " rows: " + decision.explanation;
  return decision;
}

}  // namespace

std::optional<Decision> Runtime::State::cached_decision(const DecisionCacheKey& key, std::uint64_t rows) {
  const MutexLock lock(mutex);
  const auto known = decision_cache_.find(key);
  if (known == decision_cache_.end()) return std::nullopt;
  for (const CachedDecision& choice : known->second) {
    if (rows >= choice.low && (rows < choice.high || choice.high == kNoCrossover)) return choice.decision;
  }
  return std::nullopt;
}

Result<Decision> Runtime::State::choice(const DispatchQuery& question) {
  const DecisionCacheKey key{
      {question.operations.begin(), question.operations.end()}, question.request.residency, question.request.device};
  if (auto known = cached_decision(key, question.request.rows)) return *std::move(known);
  auto chosen = select_backend(question, options, session, knowledge);
  // Errors are not cached, because a missing device can become available.
  if (!chosen) return std::move(chosen).error();
  const MutexLock lock(mutex);
  if (question.requests.generation == generation_) decision_cache_[key].push_back(*chosen);
  return std::move(chosen->decision);
}

Result<Decision> Runtime::State::decide(const char* name, std::span<const Operation* const> operations,
                                        const DispatchRequest& request) {
  auto chosen = choice({name, operations, request, requests()});
  if (!chosen) return std::move(chosen).error();
  Decision decision = placed(*std::move(chosen), request.rows);
  decision.id = OperationContext::next_id();
  decision.warm = is_warm(decision, operations);
  ++decisions;
  if (const EventCallback emit = session.event_callback()) {
    Event event = event_of(events::kDecided, name, decision);
    add_precision(event, decision);
    emit(event);
  }
  if (decision.fallback) emit_fallback(name, decision, decision.explanation);
  return decision;
}

Result<Decision> Runtime::State::inherit(const DecisionScope& frame, const char* name,
                                         std::span<const Operation* const> operations, const DispatchRequest& request) {
  Decision decision = frame.decision;
  const std::string where = to_string(decision.selected);
  const bool rows_on_device = request.residency == Residency::Device;
  if (rows_on_device && request.device != decision.selected) {
    return make_error(Code::Unsupported, std::string("the rows of ") + name + " are on a device (" +
                                             to_string(request.device) + "), but " + frame.name() +
                                             ", in which it runs, uses " + where +
                                             "; begin it with rows on the device, or materialize them first");
  }
  decision.explanation = "as decided for " + frame.name();
  decision.fallback = false;
  if (const Operation* stray = first_without(decision.selected, operations)) {
    decision.explanation = std::string(stray->name()) + " has no variant" + determinism_text(requests()) + " for " +
                           where + ", which " + frame.name() + " uses";
    if (rows_on_device || decision.requested != Mode::Auto || first_without(Backend::Cpu, operations) != nullptr) {
      return make_error(Code::Unsupported, decision.explanation + "; add it to the operations of the workflow");
    }
    decision.selected = Backend::Cpu;
    decision.device.clear();
    decision.fp64_ratio = 0;
    decision.reason = Reason::NoVariant;
    decision.fallback = true;
  }
  decision.operation = operations.front();
  decision.variant = variant_on(decision.selected, *decision.operation);
  decision.planned_precision = planned(*decision.operation, decision.fp64_ratio);
  decision.precision = decision.variant->precision;
  decision.residency = request.residency;
  decision = placed(std::move(decision), request.rows);
  decision.warm = is_warm(decision, operations);
  if (decision.fallback) emit_fallback(name, decision, decision.explanation);
  return decision;
}

const Operation* Runtime::State::first_without(Backend backend, std::span<const Operation* const> operations) {
  for (const Operation* operation : operations) {
    if (variant_on(backend, *operation) == nullptr) return operation;
  }
  return nullptr;
}

// Returns null if there is no variant.
const Variant* Runtime::State::variant_on(Backend backend, const Operation& operation) {
  unsigned ratio = 0;
  if (runtime::on_device(backend)) {
    if (const auto device = knowledge.device(session, backend)) ratio = device->fp64_ratio;
  }
  return variant_of(operation, backend, planned(operation, ratio), requests().deterministic.value);
}

Precision Runtime::State::planned(const Operation& operation, unsigned fp64_ratio) {
  return planned_precision(operation.precision(), fp64_ratio, requests().precision.value);
}

bool Runtime::State::is_warm(const Decision& decision, std::span<const Operation* const> operations) {
  bool warm = true;
  for (const Operation* operation : operations) {
    const Variant* variant =
        operation == decision.operation ? decision.variant : variant_on(decision.selected, *operation);
    // Check all variants, because the check also requests their units.
    if (variant != nullptr && !knowledge.is_warm(session, variant->requirements)) warm = false;
  }
  return warm;
}

Event Runtime::State::event_of(const EventType& type, const char* name, const Decision& decision) {
  Event event = Event::of(type);
  event.target = decision.device;
  event.origin = to_string(decision.source);
  event.message = decision.explanation;
  event.requested = to_string(decision.requested);
  event.selected = to_string(decision.selected);
  event.warm = decision.warm;
  event.cpu_device = decision.cpu_device && runtime::on_device(decision.selected);
  if (const OperationContext* current = OperationScope::current()) event.context = *current;
  event.context.operation = name;
  event.context.workflow = decision.id;
  event.context.rows = decision.rows;
  event.context.residency = decision.residency;
  return event;
}

void Runtime::State::add_precision(Event& event, const Decision& decision) {
  event.details = {{"precision", to_string(decision.precision)},
                   {"planned_precision", to_string(decision.planned_precision)},
                   {"precision_class", to_string(decision.operation->precision())},
                   {"fp64_ratio", std::to_string(decision.fp64_ratio)}};
}

void Runtime::State::emit_fallback(const char* name, const Decision& decision, const std::string& message) {
  ++fallbacks;
  const EventCallback emit = session.event_callback();
  if (!emit) return;
  Event event = event_of(events::kFellBack, name, decision);
  event.cpu_device = decision.cpu_device;
  event.message = message;
  emit(event);
}

}  // namespace kiln::runtime
