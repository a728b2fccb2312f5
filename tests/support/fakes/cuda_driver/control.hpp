// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "support/fakes/cuda_driver/application.hpp"
#include "support/fakes/cuda_driver/control_table.hpp"

namespace kiln::test {

/// The fake driver of this process: a libcuda.so.1 that behaves like a driver and runs no device code. The first object
/// in a process loads it by its path in the build tree; a later dlopen of "libcuda.so.1" returns the same library. Each
/// object starts from an empty state: handles of earlier objects are stale. Only one object may exist at a time.
class FakeCudaDriver {
 public:
  /// Return its path, and its directory for LD_LIBRARY_PATH of another process.
  static std::string path() { return KILN_FAKE_DRIVER; }
  static std::string directory() { return path().substr(0, path().rfind('/')); }

  /// `devices` is a list such as "sm_80,sm_80,sm_90".
  explicit FakeCudaDriver(const std::string& devices = "sm_80") : library_(dlopen(KILN_FAKE_DRIVER, RTLD_NOW)) {
    if (library_ == nullptr) std::abort();
    control_ = reinterpret_cast<FakeControlFunction>(dlsym(library_, kDoubleControlSymbol))();
    control_->reset(devices.c_str());
    application_ = bind<ApplicationFunctions>();
    driver_ = bind<cuda::DriverFunctions>();
    memory_ = bind<cuda::MemoryFunctions>();
  }
  ~FakeCudaDriver() { control_->reset(nullptr); }
  FakeCudaDriver(const FakeCudaDriver&) = delete;
  FakeCudaDriver& operator=(const FakeCudaDriver&) = delete;

  /// Return the functions that kiln calls, and those that only a host program calls, for tests that act as one.
  const cuda::DriverFunctions& driver() const { return driver_; }
  const cuda::MemoryFunctions& memory() const { return memory_; }
  const ApplicationFunctions& application() const { return application_; }

  void reset(const std::string& devices) { control_->reset(devices.c_str()); }
  void set_memory(std::size_t bytes_per_device) { control_->set_memory(bytes_per_device); }
  void set_driver_version(int version) { control_->set_driver_version(version); }
  void set_newest_ptx(int version) { control_->set_newest_ptx(version); }
  /// Makes the n-th call from now of an entry ("cuMemAllocAsync", without `_v2`) fail, and `times` calls in a row.
  void fail(const std::string& entry, unsigned nth, cuda::DriverResult error, unsigned times = 1) {
    control_->fail(entry.c_str(), nth, error, times);
  }
  /// Sets a function that runs instead of a kernel of this name when a launch of it runs on its stream.
  void on_launch(const std::string& kernel, FakeKernel function, void* user = nullptr) {
    control_->on_launch(kernel.c_str(), function, user);
  }

  std::size_t calls(const std::string& entry) const { return control_->calls(entry.c_str()); }
  FakeCounts counts() const { return control_->counts(); }
  std::size_t stale_uses() const { return counts().stale_uses; }
  /// Returns the number of objects that were created and not released, without a context's own streams.
  std::size_t leaks() const {
    const FakeCounts c = counts();
    return c.contexts + c.streams + c.events + c.libraries + c.modules + c.graphs + c.pools + c.allocations;
  }

  struct Launch {
    std::string kernel;
    unsigned long long context = 0;
    int device = 0;
    cuda::Stream stream = nullptr;
    unsigned grid[3] = {};
    unsigned block[3] = {};
    unsigned shared_bytes = 0;
    bool captured = false;
    std::vector<std::string> arguments;  ///< bytes of the arguments
    std::vector<cuda::DriverLaunchAttribute> attributes;

    template <class T>
    T argument(std::size_t index) const {
      T value{};
      if (arguments.at(index).size() == sizeof value) std::memcpy(&value, arguments[index].data(), sizeof value);
      return value;
    }
  };
  std::vector<Launch> launches() const {
    std::vector<Launch> all(control_->launch_count());
    for (std::size_t i = 0; i < all.size(); ++i) {
      FakeLaunch from{};
      if (control_->launch(i, &from)) all[i] = copy_of(from);
    }
    return all;
  }
  /// Returns every load of a library into a context.
  std::vector<FakeLoad> loads() const {
    std::vector<FakeLoad> all(control_->load_count());
    for (std::size_t i = 0; i < all.size(); ++i) control_->load(i, &all[i]);
    return all;
  }

 private:
  template <class Functions>
  Functions bind() {
    const auto find = reinterpret_cast<cuda::GetProcAddress>(dlsym(library_, cuda::kGetProcAddressSymbol));
    Functions functions;
    for_each_function(functions, [&](auto& function, const char* name, int version) {
      void* address = nullptr;
      find(name, &address, version, 0, nullptr);
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
    });
    return functions;
  }
  static Launch copy_of(const FakeLaunch& from) {
    Launch to;
    to.kernel = from.kernel;
    to.context = from.context;
    to.device = from.device;
    to.stream = from.stream;
    std::memcpy(to.grid, from.grid, sizeof to.grid);
    std::memcpy(to.block, from.block, sizeof to.block);
    to.shared_bytes = from.shared_bytes;
    to.captured = from.captured;
    for (std::size_t i = 0; i < from.argument_count; ++i) {
      to.arguments.emplace_back(static_cast<const char*>(from.arguments[i].data), from.arguments[i].size);
    }
    to.attributes.assign(from.attributes, from.attributes + from.attribute_count);
    return to;
  }

  void* library_;
  const FakeControl* control_ = nullptr;
  cuda::DriverFunctions driver_;
  cuda::MemoryFunctions memory_;
  ApplicationFunctions application_;
};

}  // namespace kiln::test
