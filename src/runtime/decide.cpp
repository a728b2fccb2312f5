#include <utility>

#include "base/error.hpp"
#include "runtime/state.hpp"

namespace kiln::runtime {
namespace {

Decision placed(Decision decision, std::uint64_t rows) {
  decision.rows = rows;
  decision.text = std::to_string(rows) + " rows: " + decision.text;
  return decision;
}

}  // namespace

std::optional<Decision> Runtime::State::kept(const KeptKey& key, std::uint64_t rows) {
  const MutexLock lock(mutex);
  const auto known = kept_.find(key);
  if (known == kept_.end()) return std::nullopt;
  for (const Choice& choice : known->second) {
    if (rows >= choice.low && (rows < choice.high || choice.high == kNever)) return choice.decision;
  }
  return std::nullopt;
}

Result<Decision> Runtime::State::choice(const Question& question) {
  const KeptKey key{
      {question.operations.begin(), question.operations.end()}, question.request.residency, question.request.device};
  if (auto known = kept(key, question.request.rows)) return *std::move(known);
  auto chosen = choose(question, options, session, knowledge);
  // Errors are not kept: what is missing may come.
  if (!chosen) return std::move(chosen).error();
  const MutexLock lock(mutex);
  if (question.wishes.generation == generation_) kept_[key].push_back(*chosen);
  return std::move(chosen->decision);
}

Result<Decision> Runtime::State::decide(const char* name, std::span<const Operation* const> operations,
                                        const Request& request) {
  auto chosen = choice({name, operations, request, wishes()});
  if (!chosen) return std::move(chosen).error();
  Decision decision = placed(*std::move(chosen), request.rows);
  decision.number = next_number();
  decision.warm = is_warm(decision, operations);
  ++decisions;
  if (const EventCallback tell = session.listeners()) tell(event_of(Event::Kind::Decided, name, decision));
  if (decision.fallback) tell_of_fallback(name, decision, decision.text);
  return decision;
}

Result<Decision> Runtime::State::follow(const Frame& frame, const char* name,
                                        std::span<const Operation* const> operations, const Request& request) {
  Decision decision = frame.decision;
  const std::string where = to_string(decision.selected);
  const bool rows_on_device = request.residency == Residency::Device;
  if (rows_on_device && request.device != decision.selected) {
    return failure(Code::Unsupported, std::string("the rows of ") + name + " are on a device (" +
                                          to_string(request.device) + "), and " + frame.name() +
                                          ", in which it runs, is on " + where +
                                          "; begin that with rows on the device, or materialise them first");
  }
  decision.text = "as decided for " + frame.name();
  decision.fallback = false;
  if (const Operation* stray = first_without(decision.selected, operations)) {
    decision.text = std::string(stray->name()) + " has no variant" + determinism_text(options) + " for " + where +
                    ", on which " + frame.name() + " runs";
    if (rows_on_device || decision.requested != Mode::Auto || first_without(Backend::Cpu, operations) != nullptr) {
      return failure(Code::Unsupported, decision.text + "; name it among the operations of the workflow");
    }
    decision.selected = Backend::Cpu;
    decision.device.clear();
    decision.reason = Reason::NoVariant;
    decision.fallback = true;
  }
  decision.operation = operations.front();
  decision.variant = variant_on(decision.selected, *decision.operation);
  decision.precision = decision.variant->precision;
  decision.residency = request.residency;
  decision = placed(std::move(decision), request.rows);
  decision.warm = is_warm(decision, operations);
  if (decision.fallback) tell_of_fallback(name, decision, decision.text);
  return decision;
}

const Operation* Runtime::State::first_without(Backend backend, std::span<const Operation* const> operations) {
  for (const Operation* operation : operations) {
    if (variant_on(backend, *operation) == nullptr) return operation;
  }
  return nullptr;
}

// Null where there is none.
const Variant* Runtime::State::variant_on(Backend backend, const Operation& operation) {
  unsigned ratio = 0;
  if (runtime::on_device(backend)) {
    if (const auto device = knowledge.device(session, backend)) ratio = device->fp64_ratio;
  }
  return variant_of(operation, backend, planned_precision(operation.precision(), ratio), options.deterministic);
}

bool Runtime::State::is_warm(const Decision& decision, std::span<const Operation* const> operations) {
  bool warm = true;
  for (const Operation* operation : operations) {
    const Variant* variant =
        operation == decision.operation ? decision.variant : variant_on(decision.selected, *operation);
    // All of them are asked, since asking is what requests them.
    if (variant != nullptr && !knowledge.is_warm(session, variant->needs)) warm = false;
  }
  return warm;
}

Event Runtime::State::event_of(Event::Kind kind, const char* name, const Decision& decision) {
  Event event;
  event.kind = kind;
  event.target = decision.device;
  event.origin = to_string(decision.source);
  event.message = decision.text;
  event.requested = to_string(decision.requested);
  event.selected = to_string(decision.selected);
  if (const Work* current = WorkScope::current()) event.work = *current;
  event.work.operation = name;
  event.work.workflow = decision.number;
  event.work.rows = decision.rows;
  event.work.residency = decision.residency;
  return event;
}

void Runtime::State::tell_of_fallback(const char* name, const Decision& decision, const std::string& message) {
  ++fallbacks;
  const EventCallback tell = session.listeners();
  if (!tell) return;
  Event event = event_of(Event::Kind::FellBack, name, decision);
  event.message = message;
  tell(event);
}

}  // namespace kiln::runtime
