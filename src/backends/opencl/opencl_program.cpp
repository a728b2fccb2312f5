// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/opencl_program.hpp"

#include <string_view>

#include "backends/kernel_entries.hpp"
#include "backends/opencl/opencl_inputs.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace kiln {
namespace {

// Returns true for errors that mean that the compiler rejected the source. All other errors are failures of the driver.
bool is_rejection(cl_int error) {
  return error == CL_BUILD_PROGRAM_FAILURE || error == CL_COMPILE_PROGRAM_FAILURE || error == CL_LINK_PROGRAM_FAILURE ||
         error == CL_INVALID_BUILD_OPTIONS || error == CL_INVALID_COMPILER_OPTIONS ||
         error == CL_INVALID_LINKER_OPTIONS;
}

Error driver_problem(const char* what, cl_int error) {
  return make_error(Code::Unavailable, std::string(what) + " failed with OpenCL error " + std::to_string(error));
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out.append(out.empty() ? "" : " ").append(text);
  return out;
}

// Replaces PoCL's name of the temporary source file, which differs in each run, by the unit's name, which users know.
std::string with_unit_name(std::string log, const std::string& unit) {
  static constexpr std::string_view kTemporary = "/tempfile_";
  for (std::size_t at = log.find(kTemporary); at != std::string::npos; at = log.find(kTemporary, at)) {
    const std::size_t end = log.find(".cl:", at);
    const std::size_t before = log.find_last_of(" \n", at);
    const std::size_t start = before == std::string::npos ? 0 : before + 1;
    if (end == std::string::npos || end > at + kTemporary.size() + 8) {
      at += kTemporary.size();
      continue;
    }
    log.replace(start, end + 3 - start, unit);
    at = start + unit.size();
  }
  return log;
}

}  // namespace

OpenClProgram::~OpenClProgram() {
  for (cl_program program : programs_) cl_.ReleaseProgram(program);
}

Result<cl_program> OpenClProgram::from_source(const std::string& source) {
  const char* text = source.data();
  const std::size_t size = source.size();
  cl_int error = CL_SUCCESS;
  cl_program program = cl_.CreateProgramWithSource(context_, 1, &text, &size, &error);
  if (program == nullptr) return driver_problem("clCreateProgramWithSource", error);
  programs_.push_back(program);
  return program;
}

Status OpenClProgram::build(const Unit& unit) {
  const Result<cl_program> source = from_source(unit.full_source());
  if (!source) return source.error();
  const std::string options = joined(unit.options());
  if (!unit.headers().empty()) return compile_and_link(unit, *source, options);
  const cl_int error = cl_.BuildProgram(*source, 1, &device_, options.c_str(), nullptr, nullptr);
  add_log_of(*source, unit);
  built_ = *source;
  return check(error, "clBuildProgram", unit);
}

// Only clCompileProgram accepts headers from memory.
Status OpenClProgram::compile_and_link(const Unit& unit, cl_program source, const std::string& options) {
  std::vector<cl_program> headers;
  std::vector<const char*> names;
  for (const Header& header : unit.headers()) {
    const Result<cl_program> program = from_source(header.content);
    if (!program) return program.error();
    headers.push_back(*program);
    names.push_back(header.name.c_str());
  }
  cl_int error = cl_.CompileProgram(source, 1, &device_, options.c_str(), static_cast<cl_uint>(headers.size()),
                                    headers.data(), names.data(), nullptr, nullptr);
  add_log_of(source, unit);
  if (Status compiled = check(error, "clCompileProgram", unit); !compiled) return compiled;
  built_ = cl_.LinkProgram(context_, 1, &device_, opencl_link_options(unit.options()).c_str(), 1, &source, nullptr,
                           nullptr, &error);
  if (built_ != nullptr) {
    programs_.push_back(built_);
    add_log_of(built_, unit);
  }
  return check(error, "clLinkProgram", unit);
}

Status OpenClProgram::check(cl_int error, const char* what, const Unit& unit) {
  if (error == CL_SUCCESS) return {};
  if (!is_rejection(error)) return driver_problem(what, error);
  if (log_.empty()) log_ = std::string(what) + " failed (OpenCL error " + std::to_string(error) + ") without a log";
  const std::string reason = first_error_line(log_);
  return make_error(Code::CompileFailed,
                    "the OpenCL compiler rejected " + unit.name() + (reason.empty() ? "" : ": " + reason), log_);
}

void OpenClProgram::add_log_of(cl_program program, const Unit& unit) {
  log_ += with_unit_name(opencl_build_log(cl_, program, device_), unit.name());
}

Result<std::vector<std::string>> OpenClProgram::kernels() const {
  std::size_t size = 0;
  cl_int error = cl_.GetProgramInfo(built_, CL_PROGRAM_KERNEL_NAMES, 0, nullptr, &size);
  std::string text(size, '\0');
  if (error == CL_SUCCESS) {
    error = cl_.GetProgramInfo(built_, CL_PROGRAM_KERNEL_NAMES, size, text.data(), nullptr);
  }
  if (error != CL_SUCCESS) return driver_problem("clGetProgramInfo(CL_PROGRAM_KERNEL_NAMES)", error);
  std::vector<std::string> names;
  for (const std::string_view name : split(text.c_str(), ';')) {
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

Result<Bytes> OpenClProgram::binary() const {
  // One context and one device result in one size and one binary.
  std::size_t size = 0;
  cl_int error = cl_.GetProgramInfo(built_, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr);
  if (error != CL_SUCCESS) return driver_problem("clGetProgramInfo(CL_PROGRAM_BINARY_SIZES)", error);
  std::string bytes(size, '\0');
  char* data = bytes.data();
  error = cl_.GetProgramInfo(built_, CL_PROGRAM_BINARIES, sizeof data, &data, nullptr);
  if (error != CL_SUCCESS) return driver_problem("clGetProgramInfo(CL_PROGRAM_BINARIES)", error);
  if (size == 0)
    return make_error(Code::Unsupported, "the OpenCL driver does not return a binary of the built program");
  return Bytes::of(std::move(bytes));
}

}  // namespace kiln
