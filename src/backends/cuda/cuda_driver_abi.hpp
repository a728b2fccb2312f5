// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// The part of the CUDA driver interface that kiln calls. It is declared here, so that kiln builds without a toolkit.
/// Handles are opaque pointers. The function versions are those of CUDA 12.4 and later.
namespace kiln::cuda {

/// The result of a driver function. Other values are possible.
enum class DriverResult : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  Deinitialized = 4,
  StubLibrary = 34,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,  ///< also: the thread has no current context
  NoBinaryForGpu = 209,
  InvalidPtx = 218,
  JitCompilerNotFound = 221,
  UnsupportedPtxVersion = 222,
  InvalidSource = 300,
  FileNotFound = 301,
  OperatingSystem = 304,
  InvalidHandle = 400,
  IllegalState = 401,
  NotFound = 500,
  NotReady = 600,
  IllegalAddress = 700,
  LaunchOutOfResources = 701,
  LaunchTimeout = 702,
  PrimaryContextActive = 708,
  ContextIsDestroyed = 709,
  LaunchFailed = 719,
  CooperativeLaunchTooLarge = 720,
  NotPermitted = 800,
  NotSupported = 801,
  CaptureUnsupported = 900,  ///< the call is not allowed while a stream is capturing; the capture is invalidated
  CaptureInvalidated = 901,  ///< an earlier call invalidated the capture
  CaptureMerge = 902,
  CaptureUnmatched = 903,  ///< the stream is not capturing
  CaptureUnjoined = 904,
  CaptureIsolation = 905,
  CaptureImplicit = 906,  ///< work on the legacy stream would have to wait for a capturing stream
  CapturedEvent = 907,
  CaptureWrongThread = 908,
  InvalidClusterSize = 912,
  Unknown = 999,
};

using DeviceNumber = int;
using DevicePointer = unsigned long long;
using Context = struct CUctx_st*;
using Library = struct CUlib_st*;
using Kernel = struct CUkern_st*;    ///< kernel of a library; valid in every context
using Function = struct CUfunc_st*;  ///< function of one context; a Kernel, cast, is accepted in its place
/// null is the legacy stream. The public headers declare CUDA's own type of this name.
using Stream = struct CUstream_st*;  // NOLINT(bugprone-forward-declaration-namespace)

/// Converts a kernel to the type that launch functions take. The driver then loads it into the current context if
/// necessary.
inline Function as_function(Kernel kernel) { return reinterpret_cast<Function>(kernel); }

inline Stream to_stream(void* stream) { return static_cast<Stream>(stream); }
/// Returns true for the legacy default stream, which has one handle, or null, in every context.
inline bool is_legacy_stream(const void* stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 1; }
/// Returns true for the default stream of the calling thread, which has one handle in every thread and context.
inline bool is_per_thread_stream(const void* stream) { return reinterpret_cast<std::uintptr_t>(stream) == 2; }
// A device address is a number to the driver and a pointer to callers. It is not dereferenced here.
inline void* to_pointer(DevicePointer address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));  // NOLINT(performance-no-int-to-ptr)
}
inline DevicePointer to_device_pointer(void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

constexpr unsigned kStreamNonBlocking = 1;  ///< for StreamCreate: does not synchronize with the legacy stream

enum class DeviceAttribute : int {
  MaxThreadsPerBlock = 1,
  MaxSharedBytesPerBlock = 8,
  WarpSize = 10,
  MaxRegistersPerBlock = 12,
  MultiprocessorCount = 16,
  MaxThreadsPerMultiprocessor = 39,
  CapabilityMajor = 75,
  CapabilityMinor = 76,
  MaxSharedBytesPerMultiprocessor = 81,
  ManagedMemory = 83,
  SingleToDoubleRatio = 87,  ///< ratio of single to double precision throughput
  CooperativeLaunch = 95,
  MaxSharedBytesPerBlockOptIn = 97,
  MemoryPoolsSupported = 115,
  ClusterLaunch = 120,
};

enum class FunctionAttribute : int {
  MaxThreadsPerBlock = 0,
  SharedBytes = 1,  ///< static
  Registers = 4,
  PtxVersion = 5,
  BinaryVersion = 6,
  MaxDynamicSharedBytes = 8,  ///< must be raised before a launch with more than 48 KiB
  PreferredSharedCarveout = 9,
};

enum class PointerAttribute : int { MemoryType = 2 };
enum class MemoryType : unsigned { Host = 1, Device = 2 };  ///< Host means page-locked

enum class CaptureStatus : int { None = 0, Active = 1, Invalidated = 2 };
enum class CaptureMode : int { Global = 0, ThreadLocal = 1, Relaxed = 2 };

enum class LaunchAttributeId : unsigned {
  Ignore = 0,
  Cooperative = 2,                ///< int
  ClusterDimension = 4,           ///< three unsigned
  ProgrammaticSerialization = 6,  ///< int
  Priority = 8,                   ///< int
  MemorySyncDomain = 10,
  PreferredSharedCarveout = 14,
};

/// A launch attribute in the driver's layout: an id, padding to eight bytes, 64 bytes of value.
struct DriverLaunchAttribute {
  LaunchAttributeId id = LaunchAttributeId::Ignore;
  unsigned padding = 0;
  alignas(8) unsigned char value[64] = {};
};
static_assert(sizeof(DriverLaunchAttribute) == 72 && offsetof(DriverLaunchAttribute, value) == 8);

/// A launch configuration in the driver's layout.
struct DriverLaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  Stream stream = nullptr;
  DriverLaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
static_assert(sizeof(DriverLaunchConfig) == 56 && offsetof(DriverLaunchConfig, stream) == 32 &&
              offsetof(DriverLaunchConfig, attribute_count) == 48);

using MemoryPool = struct CUmemPoolHandle_st*;

// The only kind of pool that kiln uses: device memory that other processes cannot open.
constexpr int kAllocationPinned = 1;
constexpr int kLocationDevice = 1;

/// The properties of a memory pool in the driver's layout.
struct MemoryPoolProperties {
  int allocation = kAllocationPinned;
  int handles = 0;
  int location = kLocationDevice;
  DeviceNumber device = 0;
  void* security = nullptr;  ///< not used on Linux
  std::size_t maximum = 0;   ///< maximum size in bytes; 0 means the driver's default. Drivers before CUDA 12.2 treat it
                             ///< as reserved
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};
static_assert(sizeof(MemoryPoolProperties) == 88 && offsetof(MemoryPoolProperties, security) == 16 &&
              offsetof(MemoryPoolProperties, maximum) == 24 && offsetof(MemoryPoolProperties, reserved) == 34);

/// All attributes are unsigned 64-bit numbers.
enum class MemoryPoolAttribute : int {
  ReleaseThreshold = 4,  ///< unused memory above it is released to the system at the next synchronization
  ReservedCurrent = 5,
  ReservedHigh = 6,
  UsedCurrent = 7,
  UsedHigh = 8,
};

constexpr unsigned kAttachGlobal = 1;  ///< for MemAllocManaged: valid on every stream

/// The status of a symbol from GetProcAddress.
enum class SymbolStatus : int { Found = 0, NotFound = 1, VersionNotSufficient = 2 };

/// The driver's functions by their names without `cu`. `for_each_function` has their full names and versions.
struct DriverFunctions {
  DriverResult (*Init)(unsigned flags) = nullptr;
  DriverResult (*DriverGetVersion)(int* version) = nullptr;
  DriverResult (*GetErrorName)(DriverResult error, const char** name) = nullptr;
  DriverResult (*GetErrorString)(DriverResult error, const char** text) = nullptr;

  DriverResult (*DeviceGetCount)(int* count) = nullptr;
  DriverResult (*DeviceGet)(DeviceNumber* device, int ordinal) = nullptr;
  DriverResult (*DeviceGetName)(char* name, int length, DeviceNumber device) = nullptr;
  DriverResult (*DeviceGetAttribute)(int* value, DeviceAttribute attribute, DeviceNumber device) = nullptr;
  DriverResult (*DeviceTotalMem)(std::size_t* bytes, DeviceNumber device) = nullptr;

  DriverResult (*CtxGetCurrent)(Context* context) = nullptr;  ///< null if there is none, without an error
  DriverResult (*CtxSetCurrent)(Context context) = nullptr;
  DriverResult (*CtxPushCurrent)(Context context) = nullptr;
  DriverResult (*CtxPopCurrent)(Context* context) = nullptr;
  DriverResult (*CtxGetDevice)(DeviceNumber* device) = nullptr;                 ///< device of the current context
  DriverResult (*CtxGetId)(Context context, unsigned long long* id) = nullptr;  ///< null means the current context
  DriverResult (*DevicePrimaryCtxRetain)(Context* context, DeviceNumber device) = nullptr;
  DriverResult (*DevicePrimaryCtxRelease)(DeviceNumber device) = nullptr;

  DriverResult (*LibraryLoadData)(Library* library, const void* code, int* jit_options, void** jit_values,
                                  unsigned jit_count, int* library_options, void** library_values,
                                  unsigned library_count) = nullptr;
  DriverResult (*LibraryUnload)(Library library) = nullptr;
  DriverResult (*LibraryGetKernel)(Kernel* kernel, Library library, const char* name) = nullptr;
  DriverResult (*KernelGetFunction)(Function* function, Kernel kernel) = nullptr;
  DriverResult (*KernelGetAttribute)(int* value, FunctionAttribute attribute, Kernel kernel,
                                     DeviceNumber device) = nullptr;
  DriverResult (*KernelSetAttribute)(FunctionAttribute attribute, int value, Kernel kernel,
                                     DeviceNumber device) = nullptr;
  /// Returns InvalidValue after the last parameter, which is how parameters are counted.
  DriverResult (*KernelGetParamInfo)(Kernel kernel, std::size_t index, std::size_t* offset,
                                     std::size_t* size) = nullptr;
  DriverResult (*LaunchKernelEx)(const DriverLaunchConfig* config, Function function, void** arguments,
                                 void** extra) = nullptr;
  DriverResult (*OccupancyMaxPotentialBlockSize)(int* min_grid, int* block, Function function,
                                                 std::size_t (*shared_of_block)(int block), std::size_t shared_bytes,
                                                 int block_limit) = nullptr;
  DriverResult (*OccupancyMaxActiveBlocksPerMultiprocessor)(int* blocks, Function function, int block,
                                                            std::size_t shared_bytes) = nullptr;

  DriverResult (*StreamCreate)(Stream* stream, unsigned flags) = nullptr;
  DriverResult (*StreamDestroy)(Stream stream) = nullptr;
  DriverResult (*StreamSynchronize)(Stream stream) = nullptr;
  /// Returns CaptureImplicit for the legacy stream while a blocking stream of its context is capturing.
  DriverResult (*StreamIsCapturing)(Stream stream, CaptureStatus* status) = nullptr;
  DriverResult (*StreamGetCtx)(Stream stream, Context* context) = nullptr;
  DriverResult (*ThreadExchangeStreamCaptureMode)(CaptureMode* mode) = nullptr;

  DriverResult (*MemAllocAsync)(DevicePointer* memory, std::size_t bytes, Stream stream) = nullptr;
  DriverResult (*MemFreeAsync)(DevicePointer memory, Stream stream) = nullptr;
  DriverResult (*MemcpyHtoDAsync)(DevicePointer to, const void* from, std::size_t bytes, Stream stream) = nullptr;
  DriverResult (*MemcpyDtoHAsync)(void* to, DevicePointer from, std::size_t bytes, Stream stream) = nullptr;
  DriverResult (*MemcpyHtoD)(DevicePointer to, const void* from, std::size_t bytes) = nullptr;
  DriverResult (*MemcpyDtoH)(void* to, DevicePointer from, std::size_t bytes) = nullptr;
  /// Returns InvalidValue for memory that the driver does not know: pageable host memory.
  DriverResult (*PointerGetAttribute)(void* value, PointerAttribute attribute, DevicePointer memory) = nullptr;
};

/// Functions that only the memory tiers of kiln-runtime call. They are separate, because kiln also works with a driver
/// that lacks one of them. Functions that a driver does not have are null.
struct MemoryFunctions {
  DriverResult (*MemPoolCreate)(MemoryPool* pool, const MemoryPoolProperties* properties) = nullptr;
  /// Returns at once; the pool is destroyed with the last of its allocations.
  DriverResult (*MemPoolDestroy)(MemoryPool pool) = nullptr;
  DriverResult (*MemPoolSetAttribute)(MemoryPool pool, MemoryPoolAttribute attribute, void* value) = nullptr;
  DriverResult (*MemPoolGetAttribute)(MemoryPool pool, MemoryPoolAttribute attribute, void* value) = nullptr;
  DriverResult (*MemPoolTrimTo)(MemoryPool pool, std::size_t bytes_to_keep) = nullptr;
  DriverResult (*MemAllocFromPoolAsync)(DevicePointer* memory, std::size_t bytes, MemoryPool pool,
                                        Stream stream) = nullptr;
  DriverResult (*MemAllocManaged)(DevicePointer* memory, std::size_t bytes, unsigned flags) = nullptr;
  DriverResult (*MemAlloc)(DevicePointer* memory, std::size_t bytes) = nullptr;
  DriverResult (*MemFree)(DevicePointer memory) = nullptr;
};

/// The only function that is looked up by name (`kGetProcAddressSymbol`); it returns all others. `version` is the one
/// in `for_each_function`: the driver returns the form of the function with that signature.
using GetProcAddress = DriverResult (*)(const char* name, void** function, int version, std::uint64_t flags,
                                        SymbolStatus* status);
constexpr const char* kGetProcAddressSymbol = "cuGetProcAddress_v2";

/// Calls `visit(pointer, name, version)` for each function: a reference to its pointer, its name for GetProcAddress,
/// and the CUDA version that introduced the form declared here.
template <class Visit>
void for_each_function(DriverFunctions& f, Visit visit) {
  visit(f.Init, "cuInit", 2000);
  visit(f.DriverGetVersion, "cuDriverGetVersion", 2020);
  visit(f.GetErrorName, "cuGetErrorName", 6000);
  visit(f.GetErrorString, "cuGetErrorString", 6000);
  visit(f.DeviceGetCount, "cuDeviceGetCount", 2000);
  visit(f.DeviceGet, "cuDeviceGet", 2000);
  visit(f.DeviceGetName, "cuDeviceGetName", 2000);
  visit(f.DeviceGetAttribute, "cuDeviceGetAttribute", 2000);
  visit(f.DeviceTotalMem, "cuDeviceTotalMem", 3020);
  visit(f.CtxGetCurrent, "cuCtxGetCurrent", 4000);
  visit(f.CtxSetCurrent, "cuCtxSetCurrent", 4000);
  visit(f.CtxPushCurrent, "cuCtxPushCurrent", 4000);
  visit(f.CtxPopCurrent, "cuCtxPopCurrent", 4000);
  visit(f.CtxGetDevice, "cuCtxGetDevice", 2000);
  visit(f.CtxGetId, "cuCtxGetId", 12000);
  visit(f.DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000);
  visit(f.DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 11000);
  visit(f.LibraryLoadData, "cuLibraryLoadData", 12000);
  visit(f.LibraryUnload, "cuLibraryUnload", 12000);
  visit(f.LibraryGetKernel, "cuLibraryGetKernel", 12000);
  visit(f.KernelGetFunction, "cuKernelGetFunction", 12000);
  visit(f.KernelGetAttribute, "cuKernelGetAttribute", 12000);
  visit(f.KernelSetAttribute, "cuKernelSetAttribute", 12000);
  visit(f.KernelGetParamInfo, "cuKernelGetParamInfo", 12040);
  visit(f.LaunchKernelEx, "cuLaunchKernelEx", 11060);
  visit(f.OccupancyMaxPotentialBlockSize, "cuOccupancyMaxPotentialBlockSize", 6050);
  visit(f.OccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050);
  visit(f.StreamCreate, "cuStreamCreate", 2000);
  visit(f.StreamDestroy, "cuStreamDestroy", 4000);
  visit(f.StreamSynchronize, "cuStreamSynchronize", 2000);
  visit(f.StreamIsCapturing, "cuStreamIsCapturing", 10000);
  visit(f.StreamGetCtx, "cuStreamGetCtx", 9020);
  visit(f.ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", 10010);
  visit(f.MemAllocAsync, "cuMemAllocAsync", 11020);
  visit(f.MemFreeAsync, "cuMemFreeAsync", 11020);
  visit(f.MemcpyHtoDAsync, "cuMemcpyHtoDAsync", 3020);
  visit(f.MemcpyDtoHAsync, "cuMemcpyDtoHAsync", 3020);
  visit(f.MemcpyHtoD, "cuMemcpyHtoD", 3020);
  visit(f.MemcpyDtoH, "cuMemcpyDtoH", 3020);
  visit(f.PointerGetAttribute, "cuPointerGetAttribute", 4000);
}

template <class Visit>
void for_each_function(MemoryFunctions& f, Visit visit) {
  visit(f.MemPoolCreate, "cuMemPoolCreate", 11020);
  visit(f.MemPoolDestroy, "cuMemPoolDestroy", 11020);
  visit(f.MemPoolSetAttribute, "cuMemPoolSetAttribute", 11020);
  visit(f.MemPoolGetAttribute, "cuMemPoolGetAttribute", 11020);
  visit(f.MemPoolTrimTo, "cuMemPoolTrimTo", 11020);
  visit(f.MemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020);
  visit(f.MemAllocManaged, "cuMemAllocManaged", 6000);
  visit(f.MemAlloc, "cuMemAlloc", 3020);
  visit(f.MemFree, "cuMemFree", 3020);
}

}  // namespace kiln::cuda
