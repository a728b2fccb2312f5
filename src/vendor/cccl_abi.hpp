#pragma once

#include <cstddef>
#include <cstdint>

// The C interface of NVIDIA's CCCL library (libcccl.c.parallel), as far as kiln calls it: declared here in kiln's own
// words, for the releases in cccl_releases.cpp and no others. Nothing of it is compiled against NVIDIA's headers, which
// the library's package does not have. x86-64 and aarch64 lay these out alike.
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

/// Further options and include folders for NVRTC.
struct BuildConfig {
  const char** flags = nullptr;
  std::size_t flag_count = 0;
  const char** folders = nullptr;
  std::size_t folder_count = 0;
};
static_assert(sizeof(BuildConfig) == 32);

constexpr int kPointer = 0;
constexpr int kCustomIterator = 1;
constexpr int kLtoIr = 0;
constexpr int kCppSource = 1;

/// What every build result begins with; the rest differs by algorithm.
struct BuildHead {
  int capability = 0;  ///< 90 for sm_90
  void* payload = nullptr;
  std::size_t payload_size = 0;
  int payload_kind = 0;     ///< 0 LTO-IR, 1 cubin
  void* library = nullptr;  ///< CUlibrary, once it is loaded
};
static_assert(sizeof(BuildHead) == 40);

/// Room for the build result of any algorithm where it goes by address. The largest that is known has 400 bytes.
struct alignas(16) AnyBuild {
  unsigned char bytes[1024] = {};
  BuildHead& head() { return *reinterpret_cast<BuildHead*>(bytes); }
};

/// A build result where it goes by value: what counts is its size, which decides where the next arguments lie.
template <std::size_t Size>
struct BuildOf {
  alignas(8) unsigned char bytes[Size];
};

/// CUresult.
using Outcome = int;

}  // namespace kiln::cccl_abi
