// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include <kiln/backend.hpp>
#include <kiln/cuda.hpp>
#include <kiln/launch.hpp>
#include <kiln/result.hpp>

/// Memory resources of RMM (RAPIDS Memory Manager) and of CCCL (cuda::mr) as allocators. Includes no header of theirs.
namespace kiln::cuda {

namespace detail {
/// Alignment of CUDA's own allocations in bytes.
inline constexpr std::size_t kAlignment = 256;

template <class Resource, class = void>
struct TakesStreamFirst : std::false_type {};
template <class Resource>
struct TakesStreamFirst<Resource, std::void_t<decltype(std::declval<Resource&>().allocate(
                                      std::declval<CUstream_st*>(), std::size_t{}, std::size_t{}))>> : std::true_type {
};
}  // namespace detail

/// Returns an allocator for `SessionOptions::allocator` that uses a stream-ordered memory resource of CUDA memory: a
/// type with `allocate(stream, bytes, alignment)` and `deallocate(stream, memory, bytes, alignment)`, such as
/// cuda::mr::resource_ref and RMM's resources since 25.12, or with `allocate_async(bytes, alignment, stream)` and
/// `deallocate_async(memory, bytes, alignment, stream)`, as in earlier releases.
///
/// The allocator owns `resource`. Pass a reference type (rmm::device_async_resource_ref) if the program owns the
/// resource; the resource must then outlive the session and its kernels. An exception of `allocate` becomes the error
/// of the call that needed memory. The allocator is thread-safe if the resource is.
template <class Resource>
[[nodiscard]] Allocator allocator_from(Resource resource) {
  const auto shared = std::make_shared<Resource>(std::move(resource));
  Allocator made;
  made.allocate = [shared](std::size_t bytes, StreamRef stream) -> Result<void*> {
    try {
      if constexpr (detail::TakesStreamFirst<Resource>::value) {
        return static_cast<void*>(shared->allocate(native(stream), bytes, detail::kAlignment));
      } else {
        return static_cast<void*>(shared->allocate_async(bytes, detail::kAlignment, native(stream)));
      }
    } catch (const std::exception& failure) {
      return Error{Code::Unavailable, failure.what(), {}};
    }
  };
  made.release = [shared](void* memory, std::size_t bytes, StreamRef stream) {
    if constexpr (detail::TakesStreamFirst<Resource>::value) {
      shared->deallocate(native(stream), memory, bytes, detail::kAlignment);
    } else {
      shared->deallocate_async(memory, bytes, detail::kAlignment, native(stream));
    }
  };
  made.backend = Backend::Cuda;
  return made;
}

}  // namespace kiln::cuda
