#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "cccl/callable_state.hpp"

namespace kiln::cccl {
namespace {

/// The session's allocator, or the driver's pool.
class DeviceMemory final : public TempMemory {
 public:
  explicit DeviceMemory(Device& device) : device_(device) {}
  Result<void*> allocate(std::size_t bytes, void* stream) override { return device_.allocate(bytes, stream); }
  Status release(void* memory, std::size_t bytes, void* stream) override {
    return device_.release(memory, bytes, stream);
  }
  Result<bool> capturing(void* stream) override { return device_.capturing(stream); }

 private:
  Device& device_;
};

// CUDA's default streams, as handles: the null stream, the legacy one by its other name, and that of each thread.
bool is_default_stream(const void* stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

}  // namespace

Callable::State::State(Parts from)
    : parts(std::move(from)), takes_storage_(takes_temporary(parts.spec.algorithm)),
      storage_(std::make_shared<DeviceMemory>(*parts.device)) {}

Result<bool> Callable::State::is_for_here() const {
  const auto place = parts.device->current();
  if (!place) return place.error();
  return place->target == parts.target;
}

Status Callable::State::check(const Call& call) const {
  if (is_default_stream(call.stream)) {
    return failure(Code::InvalidArgument,
                   "a call needs a stream of the caller's own: the null stream waits for all others, and that of each "
                   "thread cannot be told apart from another thread's");
  }
  const Result<bool> here = is_for_here();
  if (!here) return here.error();
  if (*here) return {};
  return failure(Code::InvalidArgument, "this callable is for " + parts.target.name() +
                                            ", and the calling thread is on another device; get one for that");
}

Result<std::size_t> Callable::State::ask(const Call& call) const {
  std::size_t bytes = 0;
  if (!takes_storage_) return bytes;
  if (Status asked = parts.module->build().run(parts.spec, call, nullptr, bytes); !asked) {
    return std::move(asked).error();
  }
  return bytes;
}

TempStorage::Query Callable::State::query_for(const Call& call) const {
  return [this, &call](const TempStorage::Size& size) {
    Call sized = call;
    sized.items = size.items;
    sized.others = size.others;
    return ask(sized);
  };
}

void Callable::State::warm_up() {
  constexpr std::uint64_t kFirst = 128;
  const auto stateful = [](const Operator& op) { return op.kind == OperatorKind::Stateful; };
  const bool needs_a_call =
      std::any_of(parts.spec.iterators.begin(), parts.spec.iterators.end(), [](const auto& it) { return it.custom; }) ||
      std::any_of(parts.spec.operators.begin(), parts.spec.operators.end(), stateful);
  if (!takes_storage_ || needs_a_call) return;
  // What fails here fails again in the first call, which can say so.
  const Call nothing;
  (void)storage_.expect({kFirst, kFirst}, query_for(nothing));
}

Status Callable::State::with_callers_storage(const Call& call) const {
  std::size_t bytes = call.temporary_bytes;
  Status run = parts.module->build().run(parts.spec, call, call.temporary, bytes);
  if (run || run.error().code != Code::Internal) return run;
  // The library does not say that this was it.
  const auto needed = ask(call);
  if (!needed || *needed <= call.temporary_bytes) return run;
  return failure(Code::InvalidArgument, "this call needs " + std::to_string(*needed) +
                                            " bytes of temporary storage and was given " +
                                            std::to_string(call.temporary_bytes));
}

Status Callable::State::put_on_stream(const Call& call) {
  if (Status good = check(call); !good) return good;
  std::size_t none = 0;
  if (!takes_storage_) return parts.module->build().run(parts.spec, call, nullptr, none);
  if (call.temporary != nullptr) return with_callers_storage(call);
  return storage_.use(call.stream, {call.items, call.others}, query_for(call), [&](const TempStorage::Piece& piece) {
    std::size_t bytes = piece.bytes;
    return parts.module->build().run(parts.spec, call, piece.memory, bytes);
  });
}

Status Callable::State::run(const Call& call) {
  const auto start = parts.observer ? system_clock().steady() : std::chrono::nanoseconds(0);
  Status outcome = put_on_stream(call);
  if (outcome) WorkScope::count_launch();
  if (parts.observer) tell(call, milliseconds_since(system_clock(), start), outcome);
  return outcome;
}

void Callable::State::tell(const Call& call, double ms, const Status& outcome) const {
  Event event;
  event.kind = Event::Kind::Launched;
  event.unit = parts.unit;
  event.target = parts.target.name();
  event.origin = to_string(parts.origin);
  event.stream = reinterpret_cast<std::uintptr_t>(call.stream);
  event.flow = parts.flow;
  event.ms = ms;
  event.message = to_string(parts.spec.algorithm);
  if (!outcome) event.message += ": " + outcome.error().message;
  parts.observer.tell(event);
}

Status Callable::State::reserve(const Call& call) {
  if (Status good = check(call); !good) return good;
  if (!takes_storage_) return {};
  return storage_.use(call.stream, {call.items, call.others}, query_for(call),
                      [](const TempStorage::Piece&) { return Status(); });
}

Status Callable::State::release(void* stream) { return storage_.release(stream); }

Status Callable::operator()(const Call& call) const { return state_->run(call); }
Status Callable::reserve(const Call& call) const { return state_->reserve(call); }
Status Callable::release(void* stream) const { return state_->release(stream); }
Result<std::size_t> Callable::temp_bytes(const Call& call) const { return state_->ask(call); }
Result<bool> Callable::is_for_here() const { return state_->is_for_here(); }
const std::vector<std::string>& Callable::kernels() const { return state_->parts.module->kernels(); }

}  // namespace kiln::cccl
