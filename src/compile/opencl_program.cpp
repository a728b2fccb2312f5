#include "compile/opencl_program.hpp"

#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "compile/opencl_inputs.hpp"

namespace kiln {
namespace {

// These say that the compiler ran and refused; all else is the driver's own trouble.
bool is_refusal(cl_int error) {
  return error == CL_BUILD_PROGRAM_FAILURE || error == CL_COMPILE_PROGRAM_FAILURE || error == CL_LINK_PROGRAM_FAILURE ||
         error == CL_INVALID_BUILD_OPTIONS || error == CL_INVALID_COMPILER_OPTIONS ||
         error == CL_INVALID_LINKER_OPTIONS;
}

Error driver_trouble(const char* what, cl_int error) {
  return failure(Code::Unavailable, std::string(what) + " failed with OpenCL error " + std::to_string(error));
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out.append(out.empty() ? "" : " ").append(text);
  return out;
}

// PoCL names the temporary file that it keeps the source in, another each time; people know the unit by its name.
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
  if (program == nullptr) return driver_trouble("clCreateProgramWithSource", error);
  programs_.push_back(program);
  return program;
}

Status OpenClProgram::build(const Unit& unit) {
  const Result<cl_program> source = from_source(unit.whole_source());
  if (!source) return source.error();
  const std::string options = joined(unit.options());
  if (!unit.headers().empty()) return compile_and_link(unit, *source, options);
  const cl_int error = cl_.BuildProgram(*source, 1, &device_, options.c_str(), nullptr, nullptr);
  add_log_of(*source, unit);
  built_ = *source;
  return judge(error, "clBuildProgram", unit);
}

// Only clCompileProgram takes headers from memory.
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
  if (Status compiled = judge(error, "clCompileProgram", unit); !compiled) return compiled;
  built_ = cl_.LinkProgram(context_, 1, &device_, opencl_link_options(unit.options()).c_str(), 1, &source, nullptr,
                           nullptr, &error);
  if (built_ != nullptr) {
    programs_.push_back(built_);
    add_log_of(built_, unit);
  }
  return judge(error, "clLinkProgram", unit);
}

Status OpenClProgram::judge(cl_int error, const char* what, const Unit& unit) {
  if (error == CL_SUCCESS) return {};
  if (!is_refusal(error)) return driver_trouble(what, error);
  if (log_.empty()) log_ = std::string(what) + " said no (OpenCL error " + std::to_string(error) + ") and not why";
  return failure(Code::CompileFailed, "the OpenCL compiler refused " + unit.name(), log_);
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
  if (error != CL_SUCCESS) return driver_trouble("clGetProgramInfo(CL_PROGRAM_KERNEL_NAMES)", error);
  std::vector<std::string> names;
  for (const std::string_view name : split(text.c_str(), ';')) {
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

Result<Bytes> OpenClProgram::binary() const {
  // One context, one device: one size and one binary.
  std::size_t size = 0;
  cl_int error = cl_.GetProgramInfo(built_, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr);
  if (error != CL_SUCCESS) return driver_trouble("clGetProgramInfo(CL_PROGRAM_BINARY_SIZES)", error);
  std::string bytes(size, '\0');
  char* data = bytes.data();
  error = cl_.GetProgramInfo(built_, CL_PROGRAM_BINARIES, sizeof data, &data, nullptr);
  if (error != CL_SUCCESS) return driver_trouble("clGetProgramInfo(CL_PROGRAM_BINARIES)", error);
  if (size == 0) return failure(Code::Unsupported, "the OpenCL driver gives no binary of what it built");
  return Bytes::of(std::move(bytes));
}

}  // namespace kiln
