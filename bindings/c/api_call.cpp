// SPDX-License-Identifier: Apache-2.0
#include "c/api_call.hpp"

#include <utility>

namespace kiln::c {

namespace {

// The error for exhausted memory. Its text is short enough to need no allocation.
kiln_error& no_memory() {
  alignas(kiln_error) static unsigned char place[sizeof(kiln_error)];
  static kiln_error& error = *new (place) kiln_error(Error{Code::Unavailable, "out of memory", {}});
  return error;
}

kiln_code deliver_no_memory(kiln_error** error) noexcept {
  if (is_plausible_pointer(error)) *error = &no_memory();
  return KILN_UNAVAILABLE;
}

kiln_code code_of(Code code) { return static_cast<kiln_code>(static_cast<int>(code) + 1); }
static_assert(static_cast<int>(Code::InvalidArgument) + 1 == KILN_INVALID_ARGUMENT);
static_assert(static_cast<int>(Code::CompileFailed) + 1 == KILN_COMPILE_FAILED);
static_assert(static_cast<int>(Code::TimedOut) + 1 == KILN_TIMED_OUT);
static_assert(static_cast<int>(Code::Internal) + 1 == KILN_INTERNAL, "kiln.h lacks a code of kiln::Code");

}  // namespace

Error invalid_argument(std::string message) { return Error{Code::InvalidArgument, std::move(message), {}}; }

bool is_plausible_pointer(const void* address) {
  constexpr std::uintptr_t kFirstPage = 4096;
  return reinterpret_cast<std::uintptr_t>(address) >= kFirstPage;
}

Status check_address(const void* address, const std::string& name) {
  if (is_plausible_pointer(address)) return {};
  return invalid_argument(name + (address == nullptr ? " is NULL" : " is not a valid address"));
}

Status check_items(const void* items, std::size_t count, const std::string& name) {
  if (count > kMaxItems)
    return invalid_argument("the number of " + name + ", " + std::to_string(count) + ", is out of range");
  return count == 0 ? Status() : check_address(items, name);
}

Status check_text(const char* text, const char* name) { return check_address(text, name); }

Error wrong_object(const void* object, const std::string& name) {
  if (object == nullptr) return invalid_argument(name + " is NULL");
  return invalid_argument(name + " is not an object of its type: it was freed or has another type");
}

Status check_size(std::size_t size, std::size_t known, const std::string& name) {
  if (size >= sizeof(std::size_t) && size <= kMaxStructBytes) return {};
  return invalid_argument(name + "->size is " + std::to_string(size) +
                          "; set it to the sizeof of the struct, which is " + std::to_string(known) +
                          " in this library");
}

kiln_code set_error(const Error& said, kiln_error** error) noexcept {
  try {
    if (is_plausible_pointer(error)) *error = new kiln_error(said);
    return code_of(said.code);
  } catch (...) {
    return deliver_no_memory(error);
  }
}

kiln_code deliver_exception(kiln_error** error) noexcept {
  try {
    throw;
  } catch (const ResultError& thrown) {
    return set_error(thrown.error(), error);
  } catch (const std::bad_alloc&) {
    return deliver_no_memory(error);
  } catch (const std::exception& thrown) {
    try {
      return set_error(Error{Code::Internal, thrown.what(), {}}, error);
    } catch (...) {
      return deliver_no_memory(error);
    }
  } catch (...) {
    return set_error(Error{Code::Internal, "unknown error", {}}, error);
  }
}

Result<std::chrono::nanoseconds> limit_of(std::int64_t timeout_ns) {
  if (timeout_ns < 0) return invalid_argument("the timeout is negative; use KILN_FOREVER for no limit");
  // A later time cannot be expressed in nanoseconds since the machine was started.
  constexpr std::chrono::nanoseconds kMaxDuration = std::chrono::hours(24 * 365 * 100);
  const std::chrono::nanoseconds timeout(timeout_ns);
  return timeout > kMaxDuration ? kForever : timeout;
}

Result<Backend> backend_of(kiln_backend backend) {
  switch (static_cast<int>(backend)) {
    case KILN_BACKEND_CUDA: return Backend::Cuda;
    case KILN_BACKEND_OPENCL: return Backend::OpenCl;
    default: return invalid_argument("backend is not a device backend; use KILN_BACKEND_CUDA or KILN_BACKEND_OPENCL");
  }
}

Result<Target> target_of(const Unit& unit, const char* text) {
  if (Status there = check_text(text, "target"); !there) return std::move(there).error();
  if (unit.kind() != "opencl") return Target::parse(text);
  if (*text == '\0') return invalid_argument("target is empty");
  return Target::opencl(text);
}

}  // namespace kiln::c

using kiln::c::is;

int kiln_c_api_version(void) { return KILN_C_API_VERSION; }

const char* kiln_version(void) { return kiln::version(); }

const char* kiln_code_name(kiln_code code) {
  const int number = static_cast<int>(code);
  if (number == KILN_OK) return "ok";
  if (number < 0 || number > KILN_INTERNAL) return "unknown";
  return kiln::to_string(static_cast<kiln::Code>(number - 1));
}

kiln_code kiln_error_code(const kiln_error* error) { return is(error) ? kiln::c::code_of(error->error.code) : KILN_OK; }

const char* kiln_error_message(const kiln_error* error) { return is(error) ? error->error.message.c_str() : ""; }

const char* kiln_error_log(const kiln_error* error) { return is(error) ? error->error.log.c_str() : ""; }

void kiln_error_free(kiln_error* error) {
  if (error != &kiln::c::no_memory()) kiln::c::destroy(error);
}
