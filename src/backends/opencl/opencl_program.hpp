// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/bytes.hpp>
#include <kiln/result.hpp>
#include <kiln/unit.hpp>

#include "backends/opencl/opencl_library.hpp"

namespace kiln {

/// An OpenCL program of one unit, for one device of one context. Not thread-safe.
class OpenClProgram {
 public:
  OpenClProgram(const OpenClFunctions& functions, cl_context context, cl_device_id device)
      : cl_(functions), context_(context), device_(device) {}
  ~OpenClProgram();
  OpenClProgram(const OpenClProgram&) = delete;
  OpenClProgram& operator=(const OpenClProgram&) = delete;

  /// Builds the unit from source. Returns Code::CompileFailed with the compiler's log if the compiler rejects it.
  Status build(const Unit& unit);

  /// Results of a successful build.
  Result<std::vector<std::string>> kernels() const;
  Result<Bytes> binary() const;
  const std::string& log() const { return log_; }

 private:
  Result<cl_program> from_source(const std::string& source);
  Status compile_and_link(const Unit& unit, cl_program source, const std::string& options);
  Status check(cl_int error, const char* what, const Unit& unit);
  void add_log_of(cl_program program, const Unit& unit);

  const OpenClFunctions& cl_;
  const cl_context context_;
  const cl_device_id device_;
  std::vector<cl_program> programs_;  // released by the destructor
  cl_program built_ = nullptr;
  std::string log_;
};

}  // namespace kiln
