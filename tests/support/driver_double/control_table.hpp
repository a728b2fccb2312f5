#pragma once

#include <cstddef>

#include "device/cuda_driver.hpp"

/// How tests talk to the driver double across its one exported function, `kiln_double_control`. Plain data only: the
/// library and the test are linked apart. Tests use test::DriverDouble of control.hpp instead.
namespace kiln::test {

struct DoubleArgument {
  const void* data;
  std::size_t size;
};

/// A launch as it was asked for. Its pointers are good until the next reset.
struct DoubleLaunch {
  const char* kernel;
  unsigned long long context;  ///< as CtxGetId has it
  int device;
  cuda::Stream stream;  ///< as it was given
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  bool captured;  ///< recorded into a graph, not put on the stream
  std::size_t argument_count;
  const DoubleArgument* arguments;  ///< their bytes as they were at the call
  std::size_t attribute_count;
  const cuda::LaunchAttribute* attributes;
  /// For kernels on the host: where device memory lies in this process; null where those bytes are not allocated.
  void* (*host)(cuda::DevicePointer memory, std::size_t bytes);
};

/// A library that was loaded into a context.
struct DoubleLoad {
  unsigned long long context;
  int device;
  cuda::Library library;
};

/// What exists just now, and what happened since the last reset.
struct DoubleCounts {
  std::size_t contexts, streams, events, libraries, modules, graphs, pools;  ///< that were not given back
  std::size_t allocations, bytes;
  std::size_t stale_uses;       ///< how often a handle or an address was given that is no longer good
  std::size_t lost_captures;    ///< that a call made invalid
  std::size_t pending;          ///< pieces of work that no synchronisation has reached
  std::size_t relaxed_threads;  ///< threads that live with their capture mode other than they began with
};

/// A kernel on the host, run in place of the device's when the work of its stream runs, under the double's lock: it
/// must call no driver function.
using DoubleKernel = void (*)(const DoubleLaunch* launch, void* user);

struct DoubleControl {
  /// Forgets everything; `devices` as KILN_DOUBLE_DEVICES has them ("sm_80,sm_90"), null for that variable.
  void (*reset)(const char* devices);
  void (*set_memory)(std::size_t bytes_per_device);
  void (*set_driver_version)(int version);  ///< 13000 for CUDA 13.0
  void (*set_newest_ptx)(int version);      ///< 90 for PTX 9.0
  /// The n-th call from now (1: the next) of an entry by its name without `_v2`, and the `times - 1` after it, fail.
  void (*fail)(const char* entry, unsigned nth, cuda::DriverResult error, unsigned times);
  std::size_t (*calls)(const char* entry);
  DoubleCounts (*counts)();
  std::size_t (*launch_count)();
  bool (*launch)(std::size_t index, DoubleLaunch* launch);
  std::size_t (*load_count)();
  bool (*load)(std::size_t index, DoubleLoad* load);
  void (*on_launch)(const char* kernel, DoubleKernel function, void* user);
};

constexpr const char* kDoubleControlSymbol = "kiln_double_control";
using DoubleControlFunction = const DoubleControl* (*)();

}  // namespace kiln::test
