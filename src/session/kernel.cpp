#include <kiln/kernel.hpp>

#include <utility>

#include "base/catch_to_error.hpp"
#include "session/session_impl.hpp"
#include "session/stream.hpp"

namespace kiln {

Result<Kernel> KernelHandle::get_or_wait(std::chrono::nanoseconds timeout, void* const* stream, Caller caller) const {
  return catch_to_error([&]() -> Result<Kernel> {
    SessionImpl& core = owner_->session->impl();
    // After a fork the handle belongs to the parent. The child has its own core, with its own slot for the same kernel.
    KernelHandleState& own = *owner_->handle;
    const auto slot = core.owns(own) ? owner_->handle : core.handle(owner_->unit, own.entry);
    const auto kernel = core.get(*slot, owner_->unit, timeout, stream, caller);
    if (!kernel) return kernel.error();
    return Kernel(*kernel);
  });
}

unsigned detail::KernelState::suggested_block(std::size_t shared_bytes) const {
  unsigned block = suggested_threads.load(std::memory_order_relaxed);
  if (block != 0) return block;
  const Result<Occupancy> best = kernel->occupancy(shared_bytes);
  if (!best) return 0;
  suggested_threads.store(best->block_size, std::memory_order_relaxed);
  return best->block_size;
}

Status Kernel::launch_raw(const LaunchConfig& config, const Argument* arguments, std::size_t count) const {
  const EventEmitter& emitter = state_->emitter;
  const auto start = emitter ? system_clock().steady() : std::chrono::nanoseconds(0);
  Status launched = state_->kernel->launch(config, arguments, count);
  if (launched) OperationScope::count_launch();
  if (!emitter) return launched;
  Event event;
  event.kind = Event::Kind::Launched;
  event.unit = state_->unit;
  event.target = state_->target.name();
  event.origin = to_string(state_->origin);
  event.stream = reinterpret_cast<std::uintptr_t>(config.stream);
  event.task_id = state_->flow;
  event.ms = milliseconds_since(system_clock(), start);
  event.grid_blocks = std::uint64_t{config.grid.x} * config.grid.y * config.grid.z;
  event.block_threads = config.block.x * config.block.y * config.block.z;
  event.suggested_block_threads = state_->suggested_block(config.shared_bytes);
  event.message = launched ? state_->name : state_->name + ": " + launched.error().message;
  emitter.emit(event);
  return launched;
}

void* Kernel::native() const { return state_->kernel->native(); }
Result<void*> Kernel::function() const { return state_->kernel->function(); }
Result<Occupancy> Kernel::occupancy(std::size_t shared_bytes) const { return state_->kernel->occupancy(shared_bytes); }
Result<std::vector<std::size_t>> Kernel::parameter_sizes() const { return state_->kernel->parameters(); }
const std::string& Kernel::name() const { return state_->name; }
const Target& Kernel::target() const { return state_->target; }

Buffer::Buffer(std::shared_ptr<detail::StreamState> stream, void* memory, std::size_t size)
    : stream_(std::move(stream)), memory_(memory), size_(size) {}

Buffer::Buffer(Buffer&& other) noexcept
    : stream_(std::move(other.stream_)), memory_(std::exchange(other.memory_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(stream_, other.stream_);
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (memory_ != nullptr) (void)stream_->device.release(memory_, size_, stream_->native);
}

void* Stream::native() const { return state_->native; }

Result<Buffer> Stream::allocate(std::size_t bytes) const {
  const auto memory = state_->device.allocate(bytes, state_->native);
  if (!memory) return memory.error();
  return Buffer(state_, *memory, bytes);
}

Result<Buffer> Stream::copy_of(const void* from, std::size_t bytes) const {
  auto buffer = allocate(bytes);
  if (!buffer) return buffer;
  if (Status copied = upload(*buffer, from, bytes); !copied) return std::move(copied).error();
  return buffer;
}

Status Stream::upload(const Buffer& to, const void* from, std::size_t bytes) const {
  return state_->device.copy_to_device(to.native(), from, bytes, state_->native);
}

Status Stream::download(void* to, const Buffer& from, std::size_t bytes) const {
  return state_->device.copy_to_host(to, from.native(), bytes, state_->native);
}

Status Stream::synchronize() const { return state_->device.synchronize(state_->native); }

}  // namespace kiln
