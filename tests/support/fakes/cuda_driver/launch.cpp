// SPDX-License-Identifier: Apache-2.0
// Launches: checked like in a driver, recorded, and run on the host if a test registered a function.
#include <algorithm>
#include <cstring>

#include "support/fakes/cuda_driver/enter.hpp"

namespace kiln::test::driver {
namespace {

using cuda::DriverLaunchConfig;

constexpr unsigned kMaxThreads = 1024;

/// Resolves a function, or a kernel passed instead: then in the context of the stream, or the caller's for the legacy
/// stream.
DriverResult resolve_function(Model& model, Function given, Context context, Function& function) {
  const Kernel kernel = reinterpret_cast<Kernel>(given);
  if (model.kernels.find(kernel) != nullptr) return model.function_of(kernel, context, function);
  const FunctionState* state = model.functions.find(given);
  if (state == nullptr) return model.reject(given);
  function = given;
  return state->context == context ? DriverResult::Success : DriverResult::InvalidHandle;
}

unsigned threads_limit(const KernelImage& kernel) { return kernel.max_threads == 0 ? kMaxThreads : kernel.max_threads; }

/// Returns the blocks that fit on one multiprocessor: by threads in whole warps, registers and shared memory, at
/// most 32.
int active_blocks(const DeviceFacts& facts, const KernelImage& kernel, int block, std::size_t dynamic_shared) {
  if (block <= 0 || static_cast<unsigned>(block) > threads_limit(kernel)) return 0;
  const int threads = (block + 31) / 32 * 32;
  int blocks = std::min(32, facts.threads_per_multiprocessor / threads);
  if (kernel.registers > 0) blocks = std::min(blocks, 65536 / (static_cast<int>(kernel.registers) * threads));
  const std::size_t shared = kernel.shared_bytes + dynamic_shared;
  if (shared > static_cast<std::size_t>(facts.shared_per_block)) return 0;
  if (shared > 0) blocks = std::min(blocks, static_cast<int>(facts.shared_per_multiprocessor / shared));
  return blocks;
}

DeviceFacts facts_in(Model& model, Context context) {
  return facts_of(model.devices[static_cast<std::size_t>(model.at(context).device)].architecture);
}

std::uint64_t blocks_of(const DriverLaunchConfig& config) {
  return std::uint64_t{config.grid_x} * config.grid_y * config.grid_z;
}

DriverResult check_cluster(const DriverLaunchConfig& config, int architecture, const unsigned (&cluster)[3]) {
  if (architecture < 90) return DriverResult::InvalidValue;
  const std::uint64_t size = std::uint64_t{cluster[0]} * cluster[1] * cluster[2];
  if (size == 0 || size > 8) return DriverResult::InvalidClusterSize;
  const bool divides =
      config.grid_x % cluster[0] == 0 && config.grid_y % cluster[1] == 0 && config.grid_z % cluster[2] == 0;
  return divides ? DriverResult::Success : DriverResult::InvalidClusterSize;
}

DriverResult check_attributes(Model& model, const DriverLaunchConfig& config, const FunctionState& function) {
  if (config.attribute_count > 0 && config.attributes == nullptr) return DriverResult::InvalidValue;
  for (unsigned i = 0; i < config.attribute_count; ++i) {
    const cuda::DriverLaunchAttribute& attribute = config.attributes[i];
    unsigned words[3];
    std::memcpy(words, attribute.value, sizeof words);
    if (attribute.id == cuda::LaunchAttributeId::ClusterDimension) {
      const int architecture = model.devices[static_cast<std::size_t>(model.at(function.context).device)].architecture;
      const DriverResult result = check_cluster(config, architecture, words);
      if (result != DriverResult::Success) return result;
    }
    if (attribute.id == cuda::LaunchAttributeId::Cooperative && words[0] != 0) {
      const DeviceFacts facts = facts_in(model, function.context);
      const int block = static_cast<int>(config.block_x * config.block_y * config.block_z);
      const int resident = active_blocks(facts, *function.kernel, block, config.shared_bytes) * facts.multiprocessors;
      if (blocks_of(config) > static_cast<std::uint64_t>(resident)) return DriverResult::CooperativeLaunchTooLarge;
    }
  }
  return DriverResult::Success;
}

DriverResult check_sizes(Model& model, const DriverLaunchConfig& config, const FunctionState& function) {
  const std::uint64_t threads = std::uint64_t{config.block_x} * config.block_y * config.block_z;
  if (blocks_of(config) == 0 || threads == 0 || threads > threads_limit(*function.kernel)) {
    return DriverResult::InvalidValue;
  }
  if (config.grid_x > 0x7fffffffU || config.grid_y > 65535 || config.grid_z > 65535 || config.block_z > 64) {
    return DriverResult::InvalidValue;
  }
  if (config.shared_bytes > static_cast<unsigned>(model.dynamic_limit(function))) return DriverResult::InvalidValue;
  if (static_cast<std::uint64_t>(function.kernel->registers) * threads > 65536) {
    return DriverResult::LaunchOutOfResources;
  }
  return check_attributes(model, config, function);
}

/// Returns the parameter block in `extra`, or null if it has none or one of another size.
const unsigned char* packed_arguments(void** extra, const KernelImage& kernel) {
  const unsigned char* buffer = nullptr;
  std::size_t size = 0;
  for (; extra != nullptr && extra[0] != nullptr; extra += 2) {
    if (reinterpret_cast<std::uintptr_t>(extra[0]) == 1) buffer = static_cast<const unsigned char*>(extra[1]);
    if (reinterpret_cast<std::uintptr_t>(extra[0]) == 2) size = *static_cast<const std::size_t*>(extra[1]);
  }
  return size >= kernel.parameter_bytes ? buffer : nullptr;
}

/// Copies the arguments to their locations in the parameter block.
DriverResult take_arguments(const KernelImage& kernel, void** arguments, void** extra, LaunchState& launch) {
  if (arguments != nullptr && extra != nullptr) return DriverResult::InvalidValue;
  const unsigned char* packed = arguments == nullptr ? packed_arguments(extra, kernel) : nullptr;
  if (!kernel.parameters.empty() && arguments == nullptr && packed == nullptr) return DriverResult::InvalidValue;
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const Parameter& parameter = kernel.parameters[i];
    const void* from = arguments != nullptr ? arguments[i] : packed + parameter.offset;
    if (from == nullptr) return DriverResult::InvalidValue;
    const auto* const bytes = static_cast<const unsigned char*>(from);
    launch.values.emplace_back(bytes, bytes + parameter.size);
  }
  for (const auto& value : launch.values) launch.arguments.push_back({value.data(), value.size()});
  return DriverResult::Success;
}

void describe(Model& model, const DriverLaunchConfig& config, const FunctionState& function, LaunchState& launch) {
  launch.kernel = function.kernel->name;
  launch.attributes.assign(config.attributes, config.attributes + config.attribute_count);
  const ContextState& context = model.at(function.context);
  launch.record.context = context.id;
  launch.record.device = context.device;
  launch.record.stream = config.stream;
  launch.record.shared_bytes = config.shared_bytes;
  const unsigned grid[3] = {config.grid_x, config.grid_y, config.grid_z};
  const unsigned block[3] = {config.block_x, config.block_y, config.block_z};
  std::copy(grid, grid + 3, launch.record.grid);
  std::copy(block, block + 3, launch.record.block);
}

// The model for host kernels, which run with the lock held and have no other access to it.
thread_local Model* running = nullptr;

void* host_pointer(DevicePointer memory, std::size_t bytes) {
  return running == nullptr ? nullptr : running->host(memory, bytes);
}

/// Returns the record with pointers into the launch, which must not move.
FakeLaunch record_of(const LaunchState& launch) {
  FakeLaunch record = launch.record;
  record.kernel = launch.kernel.c_str();
  record.argument_count = launch.arguments.size();
  record.arguments = launch.arguments.data();
  record.attribute_count = launch.attributes.size();
  record.attributes = launch.attributes.data();
  record.host = host_pointer;
  return record;
}

Work work_of(const LaunchState* launch) {
  return [launch](Model& model) {
    const auto found = model.host_kernels.find(launch->kernel);
    if (found == model.host_kernels.end()) return DriverResult::Success;
    const FakeLaunch record = record_of(*launch);
    running = &model;
    found->second.first(&record, found->second.second);
    running = nullptr;
    return DriverResult::Success;
  };
}

DriverResult launch_kernel(const char* entry, const DriverLaunchConfig* config, Function given, void** arguments,
                           void** extra) {
  return enter(entry, [&](Model& model) {
    if (config == nullptr) return DriverResult::InvalidValue;
    Stream stream = nullptr;
    DriverResult result = model.resolve(config->stream, stream);
    if (result != DriverResult::Success) return result;
    const Context context = model.streams.find(stream)->context;
    Function function = nullptr;
    result = resolve_function(model, given, context, function);
    if (result != DriverResult::Success) return result;
    const FunctionState& state = *model.functions.find(function);
    result = check_sizes(model, *config, state);
    LaunchState launch;
    if (result == DriverResult::Success) result = take_arguments(*state.kernel, arguments, extra, launch);
    if (result != DriverResult::Success) return result;
    describe(model, *config, state, launch);
    launch.record.captured = model.streams.find(stream)->capture.has_value();
    // Elements of a deque and contents of a moved vector keep their addresses, so the pointers stay valid.
    model.launches.push_back(std::move(launch));
    model.launches.back().record = record_of(model.launches.back());
    result = model.submit(stream, work_of(&model.launches.back()));
    if (result != DriverResult::Success) model.launches.pop_back();
    return result;
  });
}

/// Runs an occupancy query for a function or for a kernel in the current context.
template <class Body>
DriverResult with_occupancy(const char* entry, Function given, Body body) {
  return enter_context(entry, [&](Model& model, Context context) {
    Function function = nullptr;
    const DriverResult result = resolve_function(model, given, context, function);
    if (result != DriverResult::Success) return result;
    return body(facts_in(model, context), *model.functions.find(function)->kernel);
  });
}

}  // namespace

extern "C" {

DriverResult cuLaunchKernelEx(const DriverLaunchConfig* config, Function function, void** arguments, void** extra) {
  return launch_kernel("cuLaunchKernelEx", config, function, arguments, extra);
}

DriverResult cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** arguments,
                            void** extra) {
  DriverLaunchConfig config;
  config.grid_x = grid_x;
  config.grid_y = grid_y;
  config.grid_z = grid_z;
  config.block_x = block_x;
  config.block_y = block_y;
  config.block_z = block_z;
  config.shared_bytes = shared_bytes;
  config.stream = stream;
  return launch_kernel("cuLaunchKernel", &config, function, arguments, extra);
}

DriverResult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function function, int block,
                                                         std::size_t shared_bytes) {
  return with_occupancy("cuOccupancyMaxActiveBlocksPerMultiprocessor", function,
                        [&](const DeviceFacts& facts, const KernelImage& kernel) {
                          if (blocks == nullptr || block <= 0) return DriverResult::InvalidValue;
                          *blocks = active_blocks(facts, kernel, block, shared_bytes);
                          return DriverResult::Success;
                        });
}

DriverResult cuOccupancyMaxPotentialBlockSize(int* min_grid, int* block, Function function,
                                              std::size_t (*shared_of_block)(int), std::size_t shared_bytes,
                                              int block_limit) {
  return with_occupancy(
      "cuOccupancyMaxPotentialBlockSize", function, [&](const DeviceFacts& facts, const KernelImage& kernel) {
        if (min_grid == nullptr || block == nullptr) return DriverResult::InvalidValue;
        int maximum = static_cast<int>(threads_limit(kernel));
        if (block_limit > 0) maximum = std::min(maximum, block_limit);
        int best = 0;
        *block = *min_grid = 0;
        for (int size = maximum; size > 0; size = (size - 1) / 32 * 32) {
          const std::size_t shared = shared_of_block != nullptr ? shared_of_block(size) : shared_bytes;
          const int blocks = active_blocks(facts, kernel, size, shared);
          if (blocks * size <= best) continue;
          best = blocks * size;
          *block = size;
          *min_grid = blocks * facts.multiprocessors;
        }
        return best > 0 ? DriverResult::Success : DriverResult::InvalidValue;
      });
}

}  // extern "C"

}  // namespace kiln::test::driver
