// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/launch.hpp>
#include <kiln/target.hpp>

struct _cl_kernel;  // *cl_kernel; NOLINT(bugprone-reserved-identifier)

/// The OpenCL handles of kiln's objects with their types. Needs no header of OpenCL.
namespace kiln::opencl {

/// Returns the cl_kernel, which is valid as long as the kernel is loaded; null for a kernel of another backend. All
/// callers that set its arguments share them.
inline _cl_kernel* native(const KernelRef& kernel) {
  return kernel.target().form == Form::OpenClBinary ? static_cast<_cl_kernel*>(kernel.native()) : nullptr;
}

/// Returns the cl_command_queue. The stream must be one of OpenCL.
inline _cl_command_queue* native(StreamRef stream) { return static_cast<_cl_command_queue*>(stream.native()); }

}  // namespace kiln::opencl
