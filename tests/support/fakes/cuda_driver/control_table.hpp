// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "backends/cuda/cuda_driver_abi.hpp"

/// The interface between tests and the fake driver, through its one exported function `kiln_double_control`. Plain data
/// only, because the library and the test are linked separately. Tests use test::FakeCudaDriver of control.hpp instead.
namespace kiln::test {

struct FakeArgument {
  const void* data;
  std::size_t size;
};

/// A launch as requested. Its pointers are valid until the next reset.
struct FakeLaunch {
  const char* kernel;
  unsigned long long context;  ///< id of CtxGetId
  int device;
  cuda::Stream stream;  ///< as passed by the caller
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  bool captured;  ///< recorded into a graph instead of run on the stream
  std::size_t argument_count;
  const FakeArgument* arguments;  ///< argument bytes at the time of the call
  std::size_t attribute_count;
  const cuda::DriverLaunchAttribute* attributes;
  /// For host kernels: returns the address of device memory in this process, or null if those bytes are not allocated.
  void* (*host)(cuda::DevicePointer memory, std::size_t bytes);
};

/// A load of a library into a context.
struct FakeLoad {
  unsigned long long context;
  int device;
  cuda::Library library;
};

/// The current number of objects, and events since the last reset.
struct FakeCounts {
  std::size_t contexts, streams, events, libraries, modules, graphs, pools;  ///< not released
  std::size_t allocations, bytes;
  std::size_t stale_uses;       ///< uses of stale handles and addresses
  std::size_t lost_captures;    ///< captures that a call invalidated
  std::size_t pending;          ///< operations that no synchronization has reached
  std::size_t relaxed_threads;  ///< threads whose capture mode differs from their initial one
};

/// A host kernel, which runs instead of the device kernel when the work of its stream runs. It runs with the lock of
/// the fake driver held and must not call driver functions.
using FakeKernel = void (*)(const FakeLaunch* launch, void* user);

struct FakeControl {
  /// Forgets everything; `devices` as KILN_FAKE_DRIVER_DEVICES has them ("sm_80,sm_90"), null for that variable.
  void (*reset)(const char* devices);
  void (*set_memory)(std::size_t bytes_per_device);
  void (*set_driver_version)(int version);  ///< 13000 for CUDA 13.0
  void (*set_newest_ptx)(int version);      ///< 90 for PTX 9.0
  /// Makes the n-th call from now (1 is the next) of an entry, by its name without `_v2`, and the `times - 1` calls
  /// after it fail.
  void (*fail)(const char* entry, unsigned nth, cuda::DriverResult error, unsigned times);
  std::size_t (*calls)(const char* entry);
  FakeCounts (*counts)();
  std::size_t (*launch_count)();
  bool (*launch)(std::size_t index, FakeLaunch* launch);
  std::size_t (*load_count)();
  bool (*load)(std::size_t index, FakeLoad* load);
  void (*on_launch)(const char* kernel, FakeKernel function, void* user);
};

constexpr const char* kDoubleControlSymbol = "kiln_double_control";
using FakeControlFunction = const FakeControl* (*)();

}  // namespace kiln::test
