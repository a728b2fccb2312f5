// SPDX-License-Identifier: Apache-2.0
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
  const EffectiveSettings settings = requests();
  auto chosen = choice({name, operations, request, settings});
  if (!chosen) return std::move(chosen).error();
  Decision decision = placed(*std::move(chosen), request.rows);
  decision.id = OperationContext::next_id();
  decision.warm = is_warm(decision, operations, settings);
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
  // Read once: another thread can change them during this call.
  const EffectiveSettings settings = requests();
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
  if (!runtime::on_device(decision.selected)) decision.cpu_device = false;
  if (const Operation* stray = first_without(operations, decision.selected, settings)) {
    decision.explanation = std::string(stray->name()) + " has no variant" + restriction_text({&stray, 1}, settings) +
                           " for " + where + ", which " + frame.name() + " uses";
    if (rows_on_device || decision.requested != Mode::Auto ||
        first_without(operations, Backend::Cpu, settings) != nullptr) {
      return make_error(Code::Unsupported, decision.explanation + "; add it to the operations of the workflow");
    }
    decision.selected = Backend::Cpu;
    decision.device.clear();
    decision.cpu_device = false;
    decision.fp64_ratio = 0;
    decision.reason = Reason::NoVariant;
    decision.fallback = true;
  }
  decision.operation = operations.front();
  decision.variant = variant_of(*decision.operation, decision.selected, decision.fp64_ratio, settings);
  if (decision.variant == nullptr)
    return make_error(Code::Unsupported, std::string(name) + " has no variant for " + where);
  decision.planned_precision = planned_precision(*decision.operation, decision.fp64_ratio, settings);
  decision.precision = decision.variant->precision;
  decision.residency = request.residency;
  decision = placed(std::move(decision), request.rows);
  decision.warm = is_warm(decision, operations, settings);
  if (decision.fallback) emit_fallback(name, decision, decision.explanation);
  return decision;
}

bool Runtime::State::is_warm(const Decision& decision, std::span<const Operation* const> operations,
                             const EffectiveSettings& settings) {
  bool warm = true;
  for (const Operation* operation : operations) {
    const Variant* variant = operation == decision.operation
                                 ? decision.variant
                                 : variant_of(*operation, decision.selected, decision.fp64_ratio, settings);
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
