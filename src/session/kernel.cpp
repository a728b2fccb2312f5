// SPDX-License-Identifier: Apache-2.0
#include <kiln/kernel.hpp>

#include "session/session_impl.hpp"

namespace kiln {
namespace {

// Returns the bytes of the arguments that are local memory of OpenCL, which have no data.
std::size_t local_memory_of(const Argument* arguments, std::size_t count) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += arguments[i].data == nullptr ? arguments[i].size : 0;
  return bytes;
}

}  // namespace

unsigned detail::KernelState::suggested_block(std::size_t shared_bytes) const {
  const std::uint64_t known = suggestion.load(std::memory_order_relaxed);
  if (known != 0 && known >> 32 == shared_bytes) return static_cast<unsigned>(known);
  const Result<Occupancy> best = kernel->occupancy(shared_bytes);
  if (!best) return 0;
  suggestion.store(std::uint64_t{shared_bytes} << 32 | best->block_size, std::memory_order_relaxed);
  return best->block_size;
}

std::size_t detail::KernelState::static_shared_bytes() const {
  const std::int64_t known = static_shared.load(std::memory_order_relaxed);
  if (known >= 0) return static_cast<std::size_t>(known);
  const std::size_t bytes = kernel->static_shared_bytes();
  static_shared.store(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  return bytes;
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
  event.shared_bytes = state_->static_shared_bytes() + config.shared_bytes + local_memory_of(arguments, count);
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
Result<std::shared_ptr<const KernelParameters>> KernelRef::parameters() const { return state_->kernel->parameters(); }
Result<std::vector<std::size_t>> KernelRef::parameter_sizes() const {
  const Result<std::shared_ptr<const KernelParameters>> all = parameters();
  if (!all) return all.error();
  std::vector<std::size_t> sizes;
  for (const KernelParameter& parameter : **all) {
    if (parameter.size == 0) return std::vector<std::size_t>();
    sizes.push_back(parameter.size);
  }
  return sizes;
}
const std::string& KernelRef::name() const { return state_->name; }
const Target& KernelRef::target() const { return state_->target; }

}  // namespace kiln
