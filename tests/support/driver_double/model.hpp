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

#include "support/driver_double/control_table.hpp"
#include "support/driver_double/image.hpp"

/// The state behind the driver double's functions. Everything here is under the one lock of `enter` (enter.hpp).
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

/// A piece of work on a stream or in a graph; it may run many times.
using Work = std::function<DriverResult(Model&)>;

struct Operation {
  std::uint64_t sequence = 0;  ///< in the order of calls, over all streams
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
  bool blocking = true;  ///< waits for the legacy stream, and it for this
  bool legacy = false;
  bool internal = false;  ///< made by the context and not by a caller
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
  DriverResult broken = DriverResult::Success;  ///< what a piece of work failed with: the context stays broken
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
  MemoryPool pool = nullptr;  ///< one that somebody made; null for the device's own
  bool managed = false;       ///< takes none of the device's memory
  bool live = true;
  std::unique_ptr<std::uint8_t[]> bytes;
};

/// A pool that somebody made. What it holds is taken from its device, used or not.
struct PoolState {
  DeviceNumber device = 0;
  std::uint64_t most = 0;  ///< zero: no bound
  std::uint64_t threshold = 0;
  std::uint64_t reserved = 0, reserved_high = 0;
  std::uint64_t used = 0, used_high = 0;
  bool destroyed = false;  ///< goes with its last allocation
};

struct LibraryState {
  std::shared_ptr<const Image> image;
  std::map<std::string, Kernel> kernels;
};

struct KernelState {
  Library library = nullptr;
  const KernelImage* image = nullptr;
  std::map<DeviceNumber, int> dynamic_shared;  ///< limits that were set, by device
};

struct ModuleState {
  Context context = nullptr;
  std::shared_ptr<const Image> image;
  std::map<std::string, Function> functions;
};

struct FunctionState {
  Context context = nullptr;
  std::shared_ptr<const Image> image;  ///< keeps `kernel`
  const KernelImage* kernel = nullptr;
  Kernel from = nullptr;  ///< null for a module's
  std::optional<int> dynamic_shared;
};

struct EventState {
  Context context = nullptr;
  Stream stream = nullptr;  ///< where it was last recorded
  std::uint64_t sequence = 0;
  bool captured = false;
};

struct GraphState {
  std::vector<Work> nodes;
};

struct LaunchState {
  std::string kernel;
  std::vector<std::vector<unsigned char>> values;
  std::vector<DoubleArgument> arguments;
  std::vector<cuda::LaunchAttribute> attributes;
  DoubleLaunch record{};
};

struct Fault {
  unsigned left = 0;  ///< calls that go well first
  unsigned times = 0;
  DriverResult error = DriverResult::Success;
};

/// Things by handles that are never used again. A handle is no address: whoever looks behind it faults.
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

/// What belongs to a thread.
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
  std::map<std::string, std::pair<DoubleKernel, void*>> host_kernels;

  // State.
  bool initialised = false;
  std::uint64_t generation = 1;
  std::uint64_t serial = 0;  ///< of handles; survives a reset so that old handles stay recognisable
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
  std::set<const void*> orphans;  ///< handles that died with their context

  // Records.
  std::map<std::string, std::size_t> calls;
  std::map<std::string, Fault> faults;
  std::deque<LaunchState> launches;
  std::vector<DoubleLoad> loads;
  std::size_t stale_uses = 0;
  std::size_t lost_captures = 0;
  std::size_t relaxed_threads = 0;

  // contexts.cpp
  void configure(const char* device_list);
  bool valid(DeviceNumber device) const { return device >= 0 && static_cast<std::size_t>(device) < devices.size(); }
  Context make_context(DeviceNumber device);
  void destroy_context(Context context);
  /// The calling thread's context: InvalidContext where it has none, ContextIsDestroyed where it is gone.
  DriverResult current(Context& context);
  ContextState& at(Context context) { return *contexts.find(context); }
  /// What a handle is refused with that is in no table; counts it where it was good once.
  DriverResult refuse(const void* handle);

  // streams.cpp
  /// The stream that a handle means in the current context.
  DriverResult resolve(Stream given, Stream& stream);
  /// Puts work on a stream, or into the graph that it records.
  DriverResult submit(Stream stream, Work work);
  /// Runs what is on the stream up to a sequence number, and what that must wait for.
  void run(Stream stream, std::uint64_t until);
  void run_one(Stream stream, Operation operation);
  /// Runs all that is on the streams of a context, or of a device.
  DriverResult run_context(Context context);

  // capture.cpp
  /// Before a call that may not be made while somebody records.
  DriverResult unsafe_call();
  /// Before work on the legacy stream of a context.
  DriverResult legacy_call(Context context);
  void lose(Capture& capture);

  // memory.cpp
  /// `like` says of which pool, or that it is managed.
  DriverResult allocate(Context context, std::size_t bytes, DevicePointer& memory, const Allocation& like = {});
  void release(Allocation& allocation);
  /// Where `bytes` from `memory` lie on the host; null where they are not all in one live allocation.
  std::uint8_t* host(DevicePointer memory, std::size_t bytes);

  // pools.cpp
  /// Takes what an allocation needs from its device or pool; false where that has no more.
  bool charge(const Allocation& allocation);
  void discharge(const Allocation& allocation);
  /// Gives what a pool holds beyond `keep` and nobody uses back to its device.
  void shrink(PoolState& pool, std::uint64_t keep);

  // libraries.cpp
  /// The function of a kernel in a context, which loads its library there where it is not yet.
  DriverResult function_of(Kernel kernel, Context context, Function& function);
  int dynamic_limit(const FunctionState& function);
};

/// The calling thread's state, cleared when the model was reset since.
ThreadState& this_thread(const Model& model);

/// The numbers of a device that its architecture decides.
struct DeviceFacts {
  int multiprocessors;
  int threads_per_multiprocessor;
  int shared_per_multiprocessor;
  int shared_per_block;  ///< where more than 48 KiB are asked for
};
DeviceFacts facts_of(int architecture);

}  // namespace kiln::test::driver
