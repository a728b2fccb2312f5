#include <kiln/kernel.hpp>

#include <utility>

#include "base/guarded.hpp"
#include "session/core.hpp"
#include "session/stream.hpp"

namespace kiln {

Result<Kernel> Handle::get_slowly(std::chrono::nanoseconds limit, void* const* stream, Caller caller) const {
  return guarded([&]() -> Result<Kernel> {
    auto& handle = static_cast<HandleState&>(*slot_);
    Core& core = handle.session.core();
    // After a fork the handle is the parent's; the child has its own core, with its own slot for the same kernel.
    const auto kernel = core.get(core.handle(handle.unit, handle.entry), limit, stream, caller);
    if (!kernel) return kernel.error();
    return Kernel(*kernel);
  });
}

unsigned detail::KernelState::advised_block(std::size_t shared_bytes) const {
  unsigned block = advised.load(std::memory_order_relaxed);
  if (block != 0) return block;
  const Result<Occupancy> best = kernel->occupancy(shared_bytes);
  if (!best) return 0;
  advised.store(best->block, std::memory_order_relaxed);
  return best->block;
}

Status Kernel::launch_with(const Launch& how, const Argument* arguments, std::size_t count) const {
  const Observer& observer = state_->observer;
  const auto start = observer ? system_clock().steady() : std::chrono::nanoseconds(0);
  Status launched = state_->kernel->launch(how, arguments, count);
  if (launched) WorkScope::count_launch();
  if (!observer) return launched;
  Event event;
  event.kind = Event::Kind::Launched;
  event.unit = state_->unit;
  event.target = state_->target.name();
  event.origin = to_string(state_->origin);
  event.stream = reinterpret_cast<std::uintptr_t>(how.stream);
  event.flow = state_->flow;
  event.ms = milliseconds_since(system_clock(), start);
  event.blocks = std::uint64_t{how.grid.x} * how.grid.y * how.grid.z;
  event.block = how.block.x * how.block.y * how.block.z;
  event.advised = state_->advised_block(how.shared_bytes);
  event.message = launched ? state_->name : state_->name + ": " + launched.error().message;
  observer.tell(event);
  return launched;
}

void* Kernel::native() const { return state_->kernel->native(); }
Result<void*> Kernel::function() const { return state_->kernel->function(); }
Result<Occupancy> Kernel::occupancy(std::size_t shared_bytes) const { return state_->kernel->occupancy(shared_bytes); }
Result<std::vector<std::size_t>> Kernel::parameters() const { return state_->kernel->parameters(); }
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
  return state_->device.copy_in(to.native(), from, bytes, state_->native);
}

Status Stream::download(void* to, const Buffer& from, std::size_t bytes) const {
  return state_->device.copy_out(to, from.native(), bytes, state_->native);
}

Status Stream::synchronise() const { return state_->device.synchronise(state_->native); }

}  // namespace kiln
