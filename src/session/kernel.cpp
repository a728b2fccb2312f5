#include <kiln/kernel.hpp>

#include "session/session_impl.hpp"

namespace kiln {

unsigned detail::KernelState::suggested_block(std::size_t shared_bytes) const {
  unsigned block = suggested_threads.load(std::memory_order_relaxed);
  if (block != 0) return block;
  const Result<Occupancy> best = kernel->occupancy(shared_bytes);
  if (!best) return 0;
  suggested_threads.store(best->block_size, std::memory_order_relaxed);
  return best->block_size;
}

Status KernelRef::launch_raw(const LaunchConfig& config, const Argument* arguments, std::size_t count) const {
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
  event.stream = event_stream(config.stream.native());
  event.task_id = state_->flow;
  event.ms = milliseconds_since(system_clock(), start);
  event.grid_blocks = std::uint64_t{config.grid.x} * config.grid.y * config.grid.z;
  event.block_threads = config.block.x * config.block.y * config.block.z;
  event.suggested_block_threads = state_->suggested_block(config.shared_bytes);
  event.cpu_device = state_->cpu_device;
  event.message = launched ? state_->name : state_->name + ": " + launched.error().message;
  emitter.emit(event);
  return launched;
}

void* KernelRef::native() const { return state_->kernel->native(); }
Result<void*> KernelRef::function() const { return state_->kernel->function(); }
Result<Occupancy> KernelRef::occupancy(std::size_t shared_bytes) const {
  return state_->kernel->occupancy(shared_bytes);
}
Result<std::vector<std::size_t>> KernelRef::parameter_sizes() const { return state_->kernel->parameters(); }
const std::string& KernelRef::name() const { return state_->name; }
const Target& KernelRef::target() const { return state_->target; }

}  // namespace kiln
