// SPDX-License-Identifier: Apache-2.0
#include "backends/toy/toy_device.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "backends/argument_checks.hpp"
#include "backends/toy/toy_compiler.hpp"
#include "backends/toy/toy_program.hpp"
#include "base/error.hpp"

namespace kiln::test {
namespace {

constexpr unsigned kMaxBlock = 1024;

struct ToyStream {};

template <class T>
T value_of(const Argument& argument) {
  T value;
  std::memcpy(&value, argument.data, sizeof value);
  return value;
}

void run(const ToyKernelCode& kernel, const Argument* arguments, std::size_t i, std::vector<float>& stack) {
  const auto pop = [&] {
    const float value = stack.back();
    stack.pop_back();
    return value;
  };
  for (const ToyInstruction& step : kernel.code) {
    const Argument& argument = arguments[step.parameter];
    switch (step.op) {
      case ToyOp::Scalar: stack.push_back(value_of<float>(argument)); break;
      case ToyOp::Load: stack.push_back(value_of<const float*>(argument)[i]); break;
      case ToyOp::Store: value_of<float*>(argument)[i] = pop(); break;
      case ToyOp::Add: stack.push_back(pop() + pop()); break;
      case ToyOp::Mul: stack.push_back(pop() * pop()); break;
    }
  }
}

/// A kernel, which keeps its program alive.
class ToyKernel final : public DeviceKernel {
 public:
  ToyKernel(std::shared_ptr<const ToyProgram> program, const ToyKernelCode& kernel)
      : program_(std::move(program)), kernel_(kernel) {}

  void* native() const override { return const_cast<ToyKernelCode*>(&kernel_); }
  Result<void*> function() override { return native(); }
  Status prepare(void* /*stream*/) override { return {}; }
  Status launch(const LaunchConfig& config, const Argument* arguments, std::size_t count) override;
  Result<Occupancy> occupancy(std::size_t /*shared_bytes*/) override { return Occupancy{kMaxBlock, 1}; }

 private:
  Status check(const LaunchConfig& config, const Argument* arguments, std::size_t count) const;

  const std::shared_ptr<const ToyProgram> program_;
  const ToyKernelCode& kernel_;  // part of program_
};

Status ToyKernel::check(const LaunchConfig& config, const Argument* arguments, std::size_t count) const {
  if (config.shared_bytes != 0 || config.cluster.x != 0 || config.cooperative || config.programmatic ||
      config.priority != 0 || !config.attributes.empty()) {
    return make_error(Code::Unsupported, "the toy device supports only the grid and the block of a launch");
  }
  if (Status sizes = check_sizes(config); !sizes) return sizes;
  if (std::uint64_t{config.block.x} * config.block.y * config.block.z > kMaxBlock) {
    return make_error(Code::InvalidArgument, "a block has more than " + std::to_string(kMaxBlock) + " threads");
  }
  if (Status right = check_argument_count(kernel_.name, kernel_.parameters.size(), count); !right) return right;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t wanted = kernel_.parameters[i] == 'b' ? sizeof(float*) : sizeof(float);
    if (arguments[i].size == wanted && arguments[i].data != nullptr) continue;
    return make_error(Code::InvalidArgument, "argument " + std::to_string(i) + " of " + kernel_.name + " has " +
                                                 std::to_string(arguments[i].size) + " bytes, not " +
                                                 std::to_string(wanted));
  }
  return {};
}

Status ToyKernel::launch(const LaunchConfig& config, const Argument* arguments, std::size_t count) {
  if (Status possible = check(config, arguments, count); !possible) return possible;
  std::size_t threads = 1;
  for (const Dim3* size : {static_cast<const Dim3*>(&config.grid), static_cast<const Dim3*>(&config.block)}) {
    threads *= std::size_t{size->x} * size->y * size->z;
  }
  std::vector<float> stack;
  const std::size_t end = std::min<std::size_t>(threads, value_of<unsigned>(arguments[0]));
  for (std::size_t i = 0; i < end; ++i) run(kernel_, arguments, i, stack);
  return {};
}

/// A loaded program.
class ToyModule final : public Module {
 public:
  explicit ToyModule(ToyProgram program) : program_(std::make_shared<const ToyProgram>(std::move(program))) {}

  Result<std::shared_ptr<DeviceKernel>> kernel(const std::string& symbol) override {
    for (const ToyKernelCode& kernel : *program_) {
      if (kernel.name == symbol) return std::shared_ptr<DeviceKernel>(std::make_shared<ToyKernel>(program_, kernel));
    }
    return make_error(Code::InvalidArgument, "the module has no kernel '" + symbol + "'");
  }

 private:
  const std::shared_ptr<const ToyProgram> program_;
};

}  // namespace

std::string ToyDevice::kind() const { return kToyKind; }

Result<std::vector<DeviceInfo>> ToyDevice::devices() {
  return std::vector<DeviceInfo>{{"stack machine", toy_target(), 1, kMemory, 0, true}};
}

Result<CurrentContext> ToyDevice::current_context() { return CurrentContext{1, 0, toy_target()}; }

Status ToyDevice::make_current(std::size_t device) {
  if (device == 0) return {};
  return make_error(Code::InvalidArgument, "toy device " + std::to_string(device) + " does not exist; use device 0");
}

Result<std::shared_ptr<Module>> ToyDevice::load(const Artifact& artifact) {
  if (artifact.target != toy_target()) {
    return make_error(Code::LoadRejected, "the toy device cannot load code for " + artifact.target.name());
  }
  auto program = decode_toy(artifact.bytes.view());
  if (!program) return std::move(program).error();
  return std::shared_ptr<Module>(std::make_shared<ToyModule>(std::move(*program)));
}

Result<void*> ToyDevice::create_stream() { return static_cast<void*>(new ToyStream); }

Status ToyDevice::release_stream(void* stream) {
  delete static_cast<ToyStream*>(stream);
  return {};
}

Result<void*> ToyDevice::allocate(std::size_t bytes, void* stream) {
  if (Status possible = check_allocation(bytes); !possible) return std::move(possible).error();
  const Result<bool> given = has_allocator(allocator_);
  if (!given) return given.error();
  if (*given) return allocate_with(allocator_, bytes, stream);
  if (bytes > kMemory) return out_of_memory(bytes, "the toy device has " + std::to_string(kMemory) + " bytes");
  return ::operator new(bytes);
}

Status ToyDevice::release(void* memory, std::size_t bytes, void* stream) {
  const Result<bool> given = has_allocator(allocator_);
  if (!given) return given.error();
  if (*given) {
    allocator_.release(memory, bytes, StreamRef::from_native(stream));
  } else {
    ::operator delete(memory);
  }
  return {};
}

Status ToyDevice::copy_to_device(void* to, const void* from, std::size_t bytes, void* /*stream*/) {
  if (bytes != 0) std::memcpy(to, from, bytes);
  return {};
}

Status ToyDevice::copy_to_host(void* to, void* from, std::size_t bytes, void* /*stream*/) {
  if (bytes != 0) std::memcpy(to, from, bytes);
  return {};
}

}  // namespace kiln::test
