// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The part of the C interface of NVIDIA's CCCL library (libcccl.c.parallel) that kiln calls. It is declared here for
// the releases in cccl_releases.cpp only, without NVIDIA's headers, which the library's package does not contain. The
// layout is the same on x86-64 and aarch64.
namespace kiln::cccl_abi {

struct TypeInfo {
  std::size_t size = 0;
  std::size_t alignment = 0;
  int type = 0;
};
static_assert(sizeof(TypeInfo) == 24);

struct Op {
  int kind = 0;
  const char* name = nullptr;
  const char* code = nullptr;
  std::size_t code_size = 0;
  int code_type = 0;
  std::size_t size = 0;
  std::size_t alignment = 0;
  void* state = nullptr;
  const char** extra_code = nullptr;
  std::size_t* extra_sizes = nullptr;
  std::size_t extra_count = 0;
  int* extra_types = nullptr;
};
static_assert(sizeof(Op) == 96);

struct Value {
  TypeInfo type;
  void* state = nullptr;
};
static_assert(sizeof(Value) == 32);

struct Iterator {
  std::size_t size = 0;
  std::size_t alignment = 0;
  int kind = 0;
  Op advance;
  Op dereference;
  TypeInfo value;
  void* state = nullptr;
  void (*host_advance)(void*, std::uint64_t) = nullptr;
};
static_assert(sizeof(Iterator) == 256);

/// Additional options and include directories for NVRTC.
struct BuildConfig {
  const char** flags = nullptr;
  std::size_t flag_count = 0;
  const char** directories = nullptr;
  std::size_t directory_count = 0;
  std::uint64_t unknown[12] = {};  ///< not part of any known release; zero, or invalid pointers in a check
};
static_assert(sizeof(BuildConfig) == 128);

constexpr int kPointer = 0;
constexpr int kCustomIterator = 1;
constexpr int kLtoIr = 0;
constexpr int kCppSource = 1;

/// The common start of every build result; the rest depends on the algorithm.
struct BuildHead {
  int capability = 0;  ///< 90 for sm_90
  void* payload = nullptr;
  std::size_t payload_size = 0;
  int payload_kind = 0;     ///< 0 means LTO-IR, 1 means cubin
  void* library = nullptr;  ///< CUlibrary after loading
};
static_assert(sizeof(BuildHead) == 40);

/// Storage for the build result of any algorithm, passed by address. The largest known one has 400 bytes.
struct alignas(16) AnyBuild {
  static constexpr std::size_t kLargest = 512;
  unsigned char bytes[4096] = {};
  BuildHead& head() { return *reinterpret_cast<BuildHead*>(bytes); }
};

/// A build result that is passed by value. Only its size matters, which determines the location of the next arguments.
template <std::size_t Size>
struct BuildOf {
  alignas(8) unsigned char bytes[Size];
};

/// CUresult.
using Outcome = int;

}  // namespace kiln::cccl_abi
