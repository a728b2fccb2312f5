// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/fakes/cuda_driver/control_table.hpp"
#include "support/fakes/cuda_driver/image.hpp"

/// The state behind the functions of the fake driver. Guarded by the one lock of `enter` (enter.hpp).
namespace kiln::test::driver {

using cuda::CaptureMode;
using cuda::CaptureStatus;
using cuda::Context;
using cuda::DeviceNumber;
using cuda::DevicePointer;
using cuda::DriverResult;
using cuda::Function;
using cuda::Kernel;
using cuda::Library;
using cuda::MemoryPool;
using cuda::Stream;
using Module = struct ModuleHandle*;
using Event = struct EventHandle*;
using Graph = struct GraphHandle*;
using GraphExec = struct GraphExecHandle*;

struct Model;

/// A unit of work on a stream or in a graph. It may run many times.
using Work = std::function<DriverResult(Model&)>;

struct Operation {
  std::uint64_t sequence = 0;  ///< in the order of calls of all streams
  Work work;
};

struct Capture {
  CaptureStatus status = CaptureStatus::Active;
  CaptureMode mode = CaptureMode::Global;
  std::thread::id owner;
  std::uint64_t id = 0;
  std::vector<Work> nodes;
};

struct StreamState {
  Context context = nullptr;
  bool blocking = true;  ///< synchronizes with the legacy stream
  bool legacy = false;
  bool internal = false;  ///< created by the context, not by a caller
  std::deque<Operation> work;
  std::optional<Capture> capture;
};

struct ContextState {
  DeviceNumber device = 0;
  unsigned long long id = 0;
  Stream legacy = nullptr;
  std::map<std::thread::id, Stream> per_thread;
  std::map<Kernel, Function> functions;
  std::set<Library> loaded;
  DriverResult broken = DriverResult::Success;  ///< first error of an operation; the context stays broken
};

struct DeviceState {
  int architecture = 80;
  std::size_t used = 0;
  Context primary = nullptr;
  unsigned retained = 0;
};

struct Allocation {
  std::size_t size = 0;
  DeviceNumber device = 0;
  Context context = nullptr;
  MemoryPool pool = nullptr;  ///< a pool of a caller; null for the device's default pool
  bool managed = false;       ///< uses no device memory
  bool live = true;
  std::unique_ptr<std::uint8_t[]> bytes;
};

/// A pool created by a caller. Its reserved memory is taken from its device, used or not.
struct PoolState {
  DeviceNumber device = 0;
  std::uint64_t maximum = 0;  ///< maximum size in bytes; 0 means unlimited
  std::uint64_t threshold = 0;
  std::uint64_t reserved = 0, reserved_high = 0;
  std::uint64_t used = 0, used_high = 0;
  bool destroyed = false;  ///< removed with its last allocation
};

struct LibraryState {
  std::shared_ptr<const Image> image;
  std::map<std::string, Kernel> kernels;
};

struct KernelState {
  Library library = nullptr;
  const KernelImage* image = nullptr;
  std::map<DeviceNumber, int> dynamic_shared;  ///< configured limits by device
};

struct ModuleState {
  Context context = nullptr;
  std::shared_ptr<const Image> image;
  std::map<std::string, Function> functions;
};

struct FunctionState {
  Context context = nullptr;
  std::shared_ptr<const Image> image;  ///< owns `kernel`
  const KernelImage* kernel = nullptr;
  Kernel from = nullptr;  ///< null for a function of a module
  std::optional<int> dynamic_shared;
};

struct EventState {
  Context context = nullptr;
  Stream stream = nullptr;  ///< stream of the last record
  std::uint64_t sequence = 0;
  bool captured = false;
};

struct GraphState {
  std::vector<Work> nodes;
};

struct LaunchState {
  std::string kernel;
  std::vector<std::vector<unsigned char>> values;
  std::vector<FakeArgument> arguments;
  std::vector<cuda::DriverLaunchAttribute> attributes;
  FakeLaunch record{};
};

struct Fault {
  unsigned left = 0;  ///< calls that succeed first
  unsigned times = 0;
  DriverResult error = DriverResult::Success;
};

/// A table of objects by handles that are never reused. A handle is not an address: dereferencing it faults.
template <class Handle, class State>
class Handles {
 public:
  Handle add(std::uint64_t serial, State state) {
    const auto value = std::uintptr_t{0xD0B1} << 48 | static_cast<std::uintptr_t>(serial) << 4;
    states_.emplace(value, std::move(state));
    return reinterpret_cast<Handle>(value);
  }
  State* find(Handle handle) {
    const auto found = states_.find(reinterpret_cast<std::uintptr_t>(handle));
    return found == states_.end() ? nullptr : &found->second;
  }
  bool remove(Handle handle) { return states_.erase(reinterpret_cast<std::uintptr_t>(handle)) != 0; }
  template <class Visit>
  void for_each(Visit visit) {
    for (auto& [value, state] : states_) visit(reinterpret_cast<Handle>(value), state);
  }
  std::size_t size() const { return states_.size(); }

 private:
  std::map<std::uintptr_t, State> states_;
};

/// State of a thread.
struct ThreadState {
  std::uint64_t generation = 0;
  std::vector<Context> stack;
  CaptureMode mode = CaptureMode::Global;
};

struct Model {
  // Settings.
  std::vector<DeviceState> devices;
  std::size_t memory = std::size_t{256} << 20;
  int driver_version = 13000;
  int newest_ptx = 90;
  std::map<std::string, std::pair<FakeKernel, void*>> host_kernels;

  // State.
  bool initialized = false;
  std::uint64_t generation = 1;
  std::uint64_t serial = 0;  ///< serial number of handles; survives a reset, so that old handles are recognized
  std::uint64_t sequence = 0;
  Handles<Context, ContextState> contexts;
  Handles<Stream, StreamState> streams;
  Handles<Event, EventState> events;
  Handles<Library, LibraryState> libraries;
  Handles<Kernel, KernelState> kernels;
  Handles<Module, ModuleState> modules;
  Handles<Function, FunctionState> functions;
  Handles<Graph, GraphState> graphs;
  Handles<GraphExec, GraphState> graph_execs;
  Handles<MemoryPool, PoolState> pools;
  std::map<DevicePointer, Allocation> allocations;
  std::map<std::uintptr_t, std::size_t> pinned;  ///< registered host memory by address
  std::set<const void*> orphans;                 ///< handles whose context was destroyed

  // Records.
  std::map<std::string, std::size_t> calls;
  std::map<std::string, Fault> faults;
  std::deque<LaunchState> launches;
  std::vector<FakeLoad> loads;
  std::size_t stale_uses = 0;
  std::size_t lost_captures = 0;
  std::size_t relaxed_threads = 0;

  // contexts.cpp
  void configure(const char* device_list);
  bool valid(DeviceNumber device) const { return device >= 0 && static_cast<std::size_t>(device) < devices.size(); }
  Context make_context(DeviceNumber device);
  void destroy_context(Context context);
  /// Gets the calling thread's context. InvalidContext if it has none, ContextIsDestroyed if it was destroyed.
  DriverResult current(Context& context);
  ContextState& at(Context context) { return *contexts.find(context); }
  /// Returns the error for a handle that is in no table, and counts it if it was valid once.
  DriverResult reject(const void* handle);

  // streams.cpp
  /// Resolves a stream handle in the current context.
  DriverResult resolve(Stream given, Stream& stream);
  /// Adds work to a stream, or to the graph that it captures.
  DriverResult submit(Stream stream, Work work);
  /// Runs the work on the stream up to a sequence number, and all work that it depends on.
  void run(Stream stream, std::uint64_t until);
  void run_one(Stream stream, Operation operation);
  /// Runs all work on the streams of a context or device.
  DriverResult run_context(Context context);

  // capture.cpp
  /// Checks a call that is not allowed during a capture.
  DriverResult unsafe_call();
  /// Checks work on the legacy stream of a context.
  DriverResult legacy_call(Context context);
  void lose(Capture& capture);

  // memory.cpp
  /// Allocates memory. `like` gives the pool, or that it is managed memory.
  DriverResult allocate(Context context, std::size_t bytes, DevicePointer& memory, const Allocation& like = {});
  void release(Allocation& allocation);
  /// Returns the host address of `bytes` at `memory`, or null if they are not all in one live allocation.
  std::uint8_t* host(DevicePointer memory, std::size_t bytes);

  // pools.cpp
  /// Charges an allocation to its device or pool. Returns false if that is full.
  bool charge(const Allocation& allocation);
  void discharge(const Allocation& allocation);
  /// Returns unused memory of a pool beyond `keep` to its device.
  void shrink(PoolState& pool, std::uint64_t keep);

  // libraries.cpp
  /// Returns the function of a kernel in a context and loads its library there if needed.
  DriverResult function_of(Kernel kernel, Context context, Function& function);
  int dynamic_limit(const FunctionState& function);
};

/// Returns the calling thread's state, cleared if the model was reset since.
ThreadState& this_thread(const Model& model);

/// Properties of a device that depend on its architecture.
struct DeviceFacts {
  int multiprocessors;
  int threads_per_multiprocessor;
  int shared_per_multiprocessor;
  int shared_per_block;  ///< limit for kernels that request more than 48 KiB
};
DeviceFacts facts_of(int architecture);

}  // namespace kiln::test::driver
