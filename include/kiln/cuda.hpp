// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <kiln/kernel.hpp>
#include <kiln/launch.hpp>
#include <kiln/result.hpp>
#include <kiln/target.hpp>

struct CUkern_st;  // *CUkernel
struct CUfunc_st;  // *CUfunction

/// The CUDA handles of kiln's objects with their types. Needs no header of CUDA, and works with both of its APIs:
/// cudaStream_t is the same type as CUstream, cudaKernel_t the same as CUkernel and cudaFunction_t the same as
/// CUfunction.
namespace kiln::cuda {

/// CUDA's legacy default stream, which synchronizes with the blocking streams of its context. For programs that create
/// no stream.
inline const StreamRef default_stream = StreamRef::from_native(reinterpret_cast<void*>(std::uintptr_t{1}));
/// CUDA's default stream of the calling thread.
inline const StreamRef per_thread_stream = StreamRef::from_native(reinterpret_cast<void*>(std::uintptr_t{2}));

/// Returns the CUkernel, which is valid as long as the kernel is loaded; null for a kernel of another backend.
inline CUkern_st* native(const KernelRef& kernel) {
  return kernel.target().form != Form::OpenClBinary ? static_cast<CUkern_st*>(kernel.native()) : nullptr;
}

/// Returns the CUfunction in the calling thread's current context. Code::InvalidArgument for a kernel of another
/// backend.
inline Result<CUfunc_st*> function(const KernelRef& kernel) {
  if (kernel.target().form == Form::OpenClBinary) {
    return Error{Code::InvalidArgument, "kernel '" + kernel.name() + "' has no CUfunction: it is an OpenCL kernel", {}};
  }
  const Result<void*> found = kernel.function();
  if (!found) return found.error();
  return static_cast<CUfunc_st*>(*found);
}

/// Returns the CUstream. The stream must be one of CUDA.
inline CUstream_st* native(StreamRef stream) { return static_cast<CUstream_st*>(stream.native()); }

}  // namespace kiln::cuda
