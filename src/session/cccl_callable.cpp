// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "backends/cuda/cuda_driver_abi.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "session/cccl_callable_state.hpp"

namespace kiln::cccl {
namespace {

/// Allocates from the session's allocator or the driver's pool.
class DeviceMemory final : public StreamAllocator {
 public:
  explicit DeviceMemory(Device& device) : device_(device) {}
  Result<void*> allocate(std::size_t bytes, const StorageStream& stream) override {
    return device_.allocate(bytes, stream.native);
  }
  Status release(void* memory, std::size_t bytes, const StorageStream& stream) override {
    if (stream.context != 0) {
      const auto place = device_.current_context();
      if (!place) return place.error();
      if (place->context != stream.context) {
        return make_error(Code::InvalidArgument, "the storage belongs to the default stream of another context");
      }
    }
    return device_.release(memory, bytes, stream.native);
  }
  Result<bool> capturing(const StorageStream& stream) override { return device_.capturing(stream.native); }

 private:
  Device& device_;
};

// The legacy stream has two handles, which are the same in every context. Each context has its own storage for it.
StorageStream storage_stream(StreamRef stream, std::uint64_t context) {
  if (cuda::is_legacy_stream(stream.native())) return {nullptr, context};
  return stream.native();
}

}  // namespace

Callable::State::State(Params from)
    : params(std::move(from)), takes_storage_(takes_temporary(params.spec.algorithm)),
      storage_(std::make_shared<DeviceMemory>(*params.device)) {}

Result<bool> Callable::State::is_for_here() const {
  const auto place = params.device->current_context();
  if (!place) return place.error();
  return place->target == params.target;
}

Result<CurrentContext> Callable::State::check(const Call& call) const {
  if (!call.stream) {
    return make_error(Code::InvalidArgument,
                      "a call names its stream; kiln::cuda::default_stream is CUDA's default stream");
  }
  auto place = params.device->current_context();
  if (!place) return place;
  if (!(place->target == params.target)) {
    return make_error(Code::InvalidArgument,
                      "this callable is for " + params.target.name() +
                          ", but the calling thread uses another device; get a callable for that device");
  }
  if (!cuda::is_legacy_stream(call.stream->native())) return place;
  const Result<bool> capturing = params.device->capturing(call.stream->native());
  if (!capturing) return capturing.error();
  if (!*capturing) return place;
  return make_error(Code::Capturing,
                    "cannot use the default stream: a stream that synchronizes with it is capturing a graph; "
                    "call on the stream that is capturing");
}

Result<std::size_t> Callable::State::ask(const Call& call) const {
  std::size_t bytes = 0;
  if (!takes_storage_) return bytes;
  if (Status asked = params.module->build().run(params.spec, call, nullptr, bytes); !asked) {
    return std::move(asked).error();
  }
  return bytes;
}

TempStorage::Query Callable::State::query_for(const Call& call) const {
  return [this, &call](const TempStorage::Size& size) {
    Call sized = call;
    sized.items = size.items;
    sized.secondary_items = size.others;
    return ask(sized);
  };
}

void Callable::State::warm_up() {
  constexpr std::uint64_t kFirst = 128;
  const auto stateful = [](const Operator& op) { return op.kind == OperatorKind::Stateful; };
  const bool needs_a_call = std::any_of(params.spec.iterators.begin(), params.spec.iterators.end(),
                                        [](const auto& it) { return it.custom; }) ||
                            std::any_of(params.spec.operators.begin(), params.spec.operators.end(), stateful);
  if (!takes_storage_ || needs_a_call) return;
  // An error here occurs again in the first call, which reports it.
  const Call nothing;
  (void)storage_.prefetch_size({kFirst, kFirst}, query_for(nothing));
}

Status Callable::State::with_callers_storage(const Call& call) const {
  std::size_t bytes = call.temp_storage_bytes;
  Status run = params.module->build().run(params.spec, call, call.temp_storage, bytes);
  if (run || run.error().code != Code::Internal) return run;
  // The library does not report that too little storage was the cause.
  const auto needed = ask(call);
  if (!needed || *needed <= call.temp_storage_bytes) return run;
  return make_error(Code::InvalidArgument, "this call needs " + std::to_string(*needed) +
                                               " bytes of temporary storage, but the caller passed " +
                                               std::to_string(call.temp_storage_bytes));
}

Status Callable::State::with_own_storage(const Call& call, const CurrentContext& place, const TempStorage::Run& run) {
  const TempStorage::Size size{call.items, call.secondary_items};
  const StorageStream stream = storage_stream(*call.stream, place.context);
  if (cuda::is_per_thread_stream(stream.native)) return storage_.use_once(stream, size, query_for(call), run);
  return storage_.use(stream, size, query_for(call), run);
}

Status Callable::State::put_on_stream(const Call& call) {
  const auto place = check(call);
  if (!place) return place.error();
  std::size_t none = 0;
  if (!takes_storage_) return params.module->build().run(params.spec, call, nullptr, none);
  if (call.temp_storage != nullptr) return with_callers_storage(call);
  return with_own_storage(call, *place, [&](const TempStorage::Block& piece) {
    std::size_t bytes = piece.bytes;
    return params.module->build().run(params.spec, call, piece.memory, bytes);
  });
}

Status Callable::State::run(const Call& call) {
  const auto start = params.emitter ? system_clock().steady() : std::chrono::nanoseconds(0);
  Status outcome = put_on_stream(call);
  if (outcome) OperationScope::count_launch();
  if (params.emitter) emit(call, milliseconds_since(system_clock(), start), outcome);
  return outcome;
}

void Callable::State::emit(const Call& call, double ms, const Status& outcome) const {
  Event event;
  event.kind = Event::Kind::CalledCompiled;
  event.unit = params.unit;
  event.target = params.target.name();
  event.origin = to_string(params.origin);
  event.stream = event_stream(call.stream ? call.stream->native() : nullptr);
  event.task_id = params.flow;
  event.ms = ms;
  event.warm = true;
  event.message = to_string(params.spec.algorithm);
  if (!outcome) event.message += ": " + outcome.error().message;
  params.emitter.emit(event);
}

Status Callable::State::reserve(const Call& call) {
  const auto place = check(call);
  if (!place) return place.error();
  // The per-thread stream has no storage to keep.
  if (!takes_storage_ || cuda::is_per_thread_stream(call.stream->native())) return {};
  return with_own_storage(call, *place, [](const TempStorage::Block&) { return Status(); });
}

Status Callable::State::release(StreamRef stream) {
  if (!cuda::is_legacy_stream(stream.native())) return storage_.release(stream.native());
  const auto place = params.device->current_context();
  if (!place) return place.error();
  return storage_.release(storage_stream(stream, place->context));
}

Status Callable::operator()(const Call& call) const { return state_->run(call); }
Status Callable::reserve(const Call& call) const { return state_->reserve(call); }
Status Callable::release(StreamRef stream) const { return state_->release(stream); }
Result<std::size_t> Callable::temp_storage_bytes(const Call& call) const { return state_->ask(call); }
Result<bool> Callable::matches_current_device() const { return state_->is_for_here(); }
const std::vector<std::string>& Callable::kernels() const { return state_->params.module->kernels(); }

}  // namespace kiln::cccl
