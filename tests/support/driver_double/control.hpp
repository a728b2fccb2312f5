#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "support/driver_double/application.hpp"
#include "support/driver_double/control_table.hpp"

namespace kiln::test {

/// The driver double of this process: a libcuda.so.1 that behaves as one and runs no device code. The first of these
/// in a process opens it by its path in the build tree; whoever opens "libcuda.so.1" after that gets the same one.
/// Each starts from nothing: everything that was made before is forgotten, and its handles are stale. One at a time.
class DriverDouble {
 public:
  /// Where it lies: for LD_LIBRARY_PATH of another process (the folder).
  static std::string path() { return KILN_DRIVER_DOUBLE; }
  static std::string folder() { return path().substr(0, path().rfind('/')); }

  /// `devices` such as "sm_80,sm_80,sm_90".
  explicit DriverDouble(const std::string& devices = "sm_80") : library_(dlopen(KILN_DRIVER_DOUBLE, RTLD_NOW)) {
    if (library_ == nullptr) std::abort();
    control_ = reinterpret_cast<DoubleControlFunction>(dlsym(library_, kDoubleControlSymbol))();
    control_->reset(devices.c_str());
    application_ = bind<ApplicationFunctions>();
    driver_ = bind<cuda::DriverFunctions>();
    memory_ = bind<cuda::MemoryFunctions>();
  }
  ~DriverDouble() { control_->reset(nullptr); }
  DriverDouble(const DriverDouble&) = delete;
  DriverDouble& operator=(const DriverDouble&) = delete;

  /// The functions that kiln calls, and those that only an application does, to play one.
  const cuda::DriverFunctions& driver() const { return driver_; }
  const cuda::MemoryFunctions& memory() const { return memory_; }
  const ApplicationFunctions& application() const { return application_; }

  void reset(const std::string& devices) { control_->reset(devices.c_str()); }
  void set_memory(std::size_t bytes_per_device) { control_->set_memory(bytes_per_device); }
  void set_driver_version(int version) { control_->set_driver_version(version); }
  void set_newest_ptx(int version) { control_->set_newest_ptx(version); }
  /// The n-th call from now of an entry ("cuMemAllocAsync", without `_v2`) fails, and as many in a row as `times` says.
  void fail(const std::string& entry, unsigned nth, cuda::DriverResult error, unsigned times = 1) {
    control_->fail(entry.c_str(), nth, error, times);
  }
  /// Runs in place of a kernel of this name whenever the work of a stream with a launch of it runs.
  void on_launch(const std::string& kernel, DoubleKernel function, void* user = nullptr) {
    control_->on_launch(kernel.c_str(), function, user);
  }

  std::size_t calls(const std::string& entry) const { return control_->calls(entry.c_str()); }
  DoubleCounts counts() const { return control_->counts(); }
  std::size_t stale_uses() const { return counts().stale_uses; }
  /// Everything that was made and not given back; a context's own streams are not counted.
  std::size_t leaks() const {
    const DoubleCounts c = counts();
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
    std::vector<std::string> arguments;  ///< their bytes
    std::vector<cuda::LaunchAttribute> attributes;

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
      DoubleLaunch from{};
      if (control_->launch(i, &from)) all[i] = copy_of(from);
    }
    return all;
  }
  /// Every loading of a library into a context.
  std::vector<DoubleLoad> loads() const {
    std::vector<DoubleLoad> all(control_->load_count());
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
  static Launch copy_of(const DoubleLaunch& from) {
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
  const DoubleControl* control_ = nullptr;
  cuda::DriverFunctions driver_;
  cuda::MemoryFunctions memory_;
  ApplicationFunctions application_;
};

}  // namespace kiln::test
