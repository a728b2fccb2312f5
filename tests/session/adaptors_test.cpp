// SPDX-License-Identifier: Apache-2.0
// Streams and memory resources of other libraries. With RMM's and CUDA's headers (tools/setup.sh installs them in
// .venv) the adaptors are compiled against these; without them, against stubs with the documented interfaces.
#include <kiln/cuda.hpp>
#include <kiln/rmm.hpp>
#include <kiln/stream.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <new>
#include <type_traits>
#include <vector>

#ifdef KILN_RMM_HEADERS
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <rmm/resource_ref.hpp>
#endif

namespace kiln::test {
namespace {

static_assert(!std::is_default_constructible_v<LaunchConfig>);
static_assert(!std::is_constructible_v<LaunchConfig, Grid, Block>, "a launch names its stream");
static_assert(!std::is_constructible_v<LaunchConfig, Grid, Block, std::nullptr_t>);
static_assert(!std::is_constructible_v<LaunchConfig, Grid, Block, void*>, "a stream has a type");
static_assert(!std::is_constructible_v<LaunchConfig, unsigned, unsigned, StreamRef>, "grid and block are named");
static_assert(!std::is_constructible_v<LaunchConfig, Block, Grid, StreamRef>);
static_assert(std::is_constructible_v<LaunchConfig, Grid, Block, Stream>);
static_assert(std::is_constructible_v<LaunchConfig, Grid, Block, _cl_command_queue*>);

CUstream_st* some_stream() { return reinterpret_cast<CUstream_st*>(std::size_t{0x1230}); }

struct Call {
  CUstream_st* stream;
  std::size_t bytes;
  std::size_t alignment;
  bool operator==(const Call&) const = default;
};
struct Calls {
  std::vector<Call> allocated;
  std::vector<Call> released;
  char memory = 0;
};

/// The interface of RMM's resources before release 25.12.
struct EarlierResource {
  Calls* calls;
  void* allocate_async(std::size_t bytes, std::size_t alignment, CUstream_st* stream) const {
    if (bytes > 1000) throw std::bad_alloc();
    calls->allocated.push_back({stream, bytes, alignment});
    return &calls->memory;
  }
  void deallocate_async(void* memory, std::size_t bytes, std::size_t alignment, CUstream_st* stream) const {
    EXPECT_EQ(memory, &calls->memory);
    calls->released.push_back({stream, bytes, alignment});
  }
};

#ifdef KILN_RMM_HEADERS
using StreamOfLibrary = ::cuda::stream_ref;
#else
/// The interface of cuda::stream_ref.
struct StreamOfLibrary {
  StreamOfLibrary(CUstream_st* stream) : stream_(stream) {}  // NOLINT(google-explicit-constructor)
  CUstream_st* get() const { return stream_; }

 private:
  CUstream_st* stream_;
};
#endif

/// The interface of cuda::mr::resource, which RMM's resources have since release 25.12.
struct CurrentResource {
  Calls* calls;
  void* allocate(StreamOfLibrary stream, std::size_t bytes, std::size_t alignment) {
    return EarlierResource{calls}.allocate_async(bytes, alignment, stream.get());
  }
  void deallocate(StreamOfLibrary stream, void* memory, std::size_t bytes, std::size_t alignment) noexcept {
    EarlierResource{calls}.deallocate_async(memory, bytes, alignment, stream.get());
  }
  void* allocate_sync(std::size_t bytes, std::size_t alignment) { return allocate(nullptr_stream(), bytes, alignment); }
  void deallocate_sync(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
    deallocate(nullptr_stream(), memory, bytes, alignment);
  }
  bool operator==(const CurrentResource& other) const { return calls == other.calls; }
  bool operator!=(const CurrentResource& other) const { return calls != other.calls; }
#ifdef KILN_RMM_HEADERS
  friend void get_property(const CurrentResource&, ::cuda::mr::device_accessible) noexcept {}
#endif

 private:
  static StreamOfLibrary nullptr_stream() { return static_cast<CUstream_st*>(nullptr); }
};

template <class Resource>
void expect_calls_reach(Resource resource, const Calls& calls) {
  const Allocator allocator = cuda::allocator_from(resource);
  const auto memory = allocator.allocate(100, some_stream());
  ASSERT_TRUE(memory.has_value()) << memory.error().message;
  EXPECT_EQ(*memory, &calls.memory);
  allocator.release(*memory, 100, some_stream());
  const auto none = allocator.allocate(2000, some_stream());
  ASSERT_FALSE(none.has_value()) << "an exception is the error of the call";
  EXPECT_EQ(none.error().code, Code::Unavailable);
  EXPECT_NE(none.error().message.find("bad_alloc"), std::string::npos) << none.error().message;
  EXPECT_EQ(calls.allocated, (std::vector<Call>{{some_stream(), 100, 256}}));
  EXPECT_EQ(calls.released, calls.allocated);
}

TEST(Adaptors, LaunchTakesStreamsOfOtherLibraries) {
  struct Converting {
    operator CUstream_st*() const { return some_stream(); }  // NOLINT(google-explicit-constructor): as in RMM
  };
  for (const LaunchConfig& config : {LaunchConfig(Grid(1), Block(2, 3), some_stream()),
                                     LaunchConfig(Grid(1), Block(2, 3), StreamOfLibrary(some_stream())),
                                     LaunchConfig(Grid(1), Block(2, 3), Converting())}) {
    EXPECT_EQ(cuda::native(config.stream), some_stream());
    EXPECT_EQ(config.block.y, 3U);
    EXPECT_EQ(config.block.z, 1U);
  }
}

TEST(Adaptors, AllocatorUsesResourceOfEarlierReleases) {
  Calls calls;
  expect_calls_reach(EarlierResource{&calls}, calls);
}

TEST(Adaptors, AllocatorUsesResource) {
  Calls calls;
  expect_calls_reach(CurrentResource{&calls}, calls);
}

#ifdef KILN_RMM_HEADERS
TEST(Adaptors, AllocatorUsesReferenceToResourceOfRmm) {
  Calls calls;
  CurrentResource resource{&calls};
  expect_calls_reach(rmm::device_async_resource_ref(resource), calls);
}
#endif

}  // namespace
}  // namespace kiln::test
