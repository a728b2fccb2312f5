// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cuda_kernel.hpp"

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "backends/argument_checks.hpp"
#include "backends/parameter_types.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

using cuda::DriverResult;
using cuda::LaunchAttributeId;

// More dynamic shared memory than this must be enabled for a kernel before a launch with it.
constexpr std::size_t kSharedForEveryone = 48 << 10;

// Upper limit: no kernel has parameters of more bytes than this.
constexpr std::size_t kMaxParameters = 32768;

template <class T>
cuda::DriverLaunchAttribute attribute(LaunchAttributeId id, const T& value) {
  cuda::DriverLaunchAttribute made;
  made.id = id;
  std::memcpy(made.value, &value, sizeof value);
  return made;
}

Result<std::vector<cuda::DriverLaunchAttribute>> attributes_of(const LaunchConfig& config) {
  std::vector<cuda::DriverLaunchAttribute> made;
  const unsigned cluster[] = {config.cluster.x, config.cluster.y, config.cluster.z};
  if (cluster[0] != 0 || cluster[1] != 0 || cluster[2] != 0) {
    if (cluster[0] == 0 || cluster[1] == 0 || cluster[2] == 0) {
      return make_error(Code::InvalidArgument, "invalid cluster: it needs at least one block in each dimension");
    }
    made.push_back(attribute(LaunchAttributeId::ClusterDimension, cluster));
  }
  if (config.cooperative) made.push_back(attribute(LaunchAttributeId::Cooperative, 1));
  if (config.programmatic) made.push_back(attribute(LaunchAttributeId::ProgrammaticSerialization, 1));
  if (config.priority != 0) made.push_back(attribute(LaunchAttributeId::Priority, config.priority));
  for (const LaunchAttribute& raw : config.attributes) {
    made.push_back(attribute(static_cast<LaunchAttributeId>(raw.id), raw.value));
  }
  return made;
}

// The addresses of the arguments, as the driver needs them. Most kernels need no allocation.
class Addresses {
 public:
  Addresses(const Argument* arguments, std::size_t count) {
    if (count > few_.size()) many_.resize(count);
    for (std::size_t i = 0; i < count; ++i) data()[i] = const_cast<void*>(arguments[i].data);
  }
  void** data() { return many_.empty() ? few_.data() : many_.data(); }

 private:
  std::array<void*, 32> few_{};
  std::vector<void*> many_;
};

}  // namespace

CudaKernel::CudaKernel(std::shared_ptr<const CudaLibrary> library, cuda::Kernel kernel, std::string name)
    : library_(std::move(library)), kernel_(kernel), name_(std::move(name)) {}

Result<void*> CudaKernel::function() {
  const Result<unsigned long long> context = api().context_id();
  if (!context) return context.error();
  const ScopedRelaxedCapture relaxed(api());
  if (!relaxed.entered()) return relaxed.entered().error();
  cuda::Function function = nullptr;
  const DriverResult result = api()->KernelGetFunction(&function, kernel_);
  if (result != DriverResult::Success) return api().failure("cuKernelGetFunction", result);
  return static_cast<void*>(function);
}

bool CudaKernel::is_ready_in(unsigned long long context) {
  if (last_.load(std::memory_order_acquire) == context) return true;
  const MutexLock lock(mutex_);
  if (ready_.count(context) == 0) return false;
  last_.store(context, std::memory_order_release);
  return true;
}

Status CudaKernel::prepare(void* stream) {
  const Result<unsigned long long> context = api().context_id();
  if (!context) return context.error();
  if (is_ready_in(*context)) return {};
  if (Status idle = api().check_not_capturing("load a kernel", stream); !idle) return idle;
  return load_into(*context);
}

// Without the mutex, because a load is slow and other threads launch during this time. Two threads that load for one
// context call the driver twice, and it loads once.
Status CudaKernel::load_into(unsigned long long context) {
  const ScopedRelaxedCapture relaxed(api());
  if (!relaxed.entered()) return relaxed.entered();
  cuda::Function function = nullptr;
  const DriverResult result = api()->KernelGetFunction(&function, kernel_);
  if (result != DriverResult::Success) return api().failure("cuKernelGetFunction", result);
  const Result<std::vector<std::size_t>> sizes = ask_parameters();
  if (!sizes) return sizes.error();
  auto parameters = std::make_shared<const KernelParameters>(parameters_of_symbol(name_, *sizes));
  const MutexLock lock(mutex_);
  if (parameters_ == nullptr) parameters_ = std::move(parameters);
  ready_.insert(context);
  last_.store(context, std::memory_order_release);
  return {};
}

Result<std::vector<std::size_t>> CudaKernel::ask_parameters() const {
  std::vector<std::size_t> sizes;
  while (sizes.size() <= kMaxParameters) {
    std::size_t offset = 0;
    std::size_t size = 0;
    const DriverResult result = api()->KernelGetParamInfo(kernel_, sizes.size(), &offset, &size);
    if (result == DriverResult::InvalidValue) return sizes;
    if (result != DriverResult::Success) return api().failure("cuKernelGetParamInfo", result);
    sizes.push_back(size);
  }
  return make_error(Code::Internal, name_ + " has too many parameters");
}

Result<std::shared_ptr<const KernelParameters>> CudaKernel::parameters() {
  if (last_.load(std::memory_order_acquire) != 0) return parameters_;
  if (Status prepared = prepare(nullptr); !prepared) return std::move(prepared).error();
  return parameters_;
}

Status CudaKernel::check_arguments(const Argument* arguments, std::size_t count) const {
  const KernelParameters& parameters = *parameters_;
  if (Status right = check_argument_count(name_, parameters.size(), count); !right) return right;
  for (std::size_t i = 0; i < count; ++i) {
    if (arguments[i].size == parameters[i].size && arguments[i].data != nullptr) continue;
    return make_error(Code::InvalidArgument,
                      "argument " + std::to_string(i) + " of " + name_ + " is " + std::to_string(parameters[i].size) +
                          " bytes, but got " +
                          (arguments[i].data != nullptr ? std::to_string(arguments[i].size) : "none"));
  }
  return {};
}

Status CudaKernel::allow_shared_bytes(std::size_t bytes) {
  if (bytes <= kSharedForEveryone) return {};
  if (bytes > std::numeric_limits<int>::max()) {
    return make_error(Code::InvalidArgument,
                      std::to_string(bytes) + " bytes of shared memory exceed the limit of every device");
  }
  cuda::DeviceNumber device = 0;
  DriverResult result = api()->CtxGetDevice(&device);
  if (result != DriverResult::Success) return api().failure("cuCtxGetDevice", result);
  // Holds the mutex to the end: a thread that needs less must not reduce the limit that another thread has just set.
  const MutexLock lock(mutex_);
  std::size_t& allowed = shared_allowed_[device];
  if (bytes <= allowed) return {};
  const ScopedRelaxedCapture relaxed(api());
  if (!relaxed.entered()) return relaxed.entered();
  result = api()->KernelSetAttribute(cuda::FunctionAttribute::MaxDynamicSharedBytes, static_cast<int>(bytes), kernel_,
                                     device);
  if (result != DriverResult::Success) return api().failure("cuKernelSetAttribute", result);
  allowed = bytes;
  return {};
}

Status CudaKernel::launch(const LaunchConfig& config, const Argument* arguments, std::size_t count) {
  if (Status possible = check_sizes(config); !possible) return possible;
  Result<std::vector<cuda::DriverLaunchAttribute>> attributes = attributes_of(config);
  if (!attributes) return std::move(attributes).error();
  if (Status ready = prepare(config.stream.native()); !ready) return ready;
  if (Status right = check_arguments(arguments, count); !right) return right;
  if (Status allowed = allow_shared_bytes(config.shared_bytes); !allowed) return allowed;
  cuda::DriverLaunchConfig driver_config;
  driver_config.grid_x = config.grid.x;
  driver_config.grid_y = config.grid.y;
  driver_config.grid_z = config.grid.z;
  driver_config.block_x = config.block.x;
  driver_config.block_y = config.block.y;
  driver_config.block_z = config.block.z;
  driver_config.shared_bytes = static_cast<unsigned>(config.shared_bytes);
  driver_config.stream = cuda::to_stream(config.stream.native());
  driver_config.attributes = attributes->data();
  driver_config.attribute_count = static_cast<unsigned>(attributes->size());
  Addresses addresses(arguments, count);
  return api().check("cuLaunchKernelEx",
                     api()->LaunchKernelEx(&driver_config, cuda::as_function(kernel_), addresses.data(), nullptr));
}

Result<Occupancy> CudaKernel::occupancy(std::size_t shared_bytes) {
  const Result<unsigned long long> context = api().context_id();
  if (!context) return context.error();
  if (Status allowed = allow_shared_bytes(shared_bytes); !allowed) return std::move(allowed).error();
  const ScopedRelaxedCapture relaxed(api());
  if (!relaxed.entered()) return relaxed.entered().error();
  int grid = 0;
  int block = 0;
  const DriverResult result =
      api()->OccupancyMaxPotentialBlockSize(&grid, &block, cuda::as_function(kernel_), nullptr, shared_bytes, 0);
  if (result != DriverResult::Success) return api().failure("cuOccupancyMaxPotentialBlockSize", result);
  if (grid < 1 || block < 1)
    return make_error(Code::InvalidArgument, "no block size of " + name_ + " fits on this device");
  return Occupancy{static_cast<unsigned>(block), static_cast<unsigned>(grid)};
}

std::size_t CudaKernel::static_shared_bytes() {
  cuda::DeviceNumber device = 0;
  if (api()->CtxGetDevice(&device) != DriverResult::Success) return 0;
  const ScopedRelaxedCapture relaxed(api());
  int bytes = 0;
  const bool known = relaxed.entered() && api()->KernelGetAttribute(&bytes, cuda::FunctionAttribute::SharedBytes,
                                                                    kernel_, device) == DriverResult::Success;
  return known && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

}  // namespace kiln
