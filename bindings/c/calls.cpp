#include "c/calls.hpp"

#include <utility>

namespace kiln::c {

namespace {

// Where no memory is left there is none for an error either. Its text is short enough to need none.
kiln_error& no_memory() {
  alignas(kiln_error) static unsigned char place[sizeof(kiln_error)];
  static kiln_error& error = *new (place) kiln_error(Error{Code::Unavailable, "out of memory", {}});
  return error;
}

kiln_code deliver_no_memory(kiln_error** error) noexcept {
  if (plausible(error)) *error = &no_memory();
  return KILN_UNAVAILABLE;
}

kiln_code code_of(Code code) { return static_cast<kiln_code>(static_cast<int>(code) + 1); }
static_assert(static_cast<int>(Code::InvalidArgument) + 1 == KILN_INVALID_ARGUMENT);
static_assert(static_cast<int>(Code::CompileFailed) + 1 == KILN_COMPILE_FAILED);
static_assert(static_cast<int>(Code::TimedOut) + 1 == KILN_TIMED_OUT);
static_assert(static_cast<int>(Code::Internal) + 1 == KILN_INTERNAL, "a code of kiln's has none in kiln.h");

}  // namespace

Error wrong(std::string message) { return Error{Code::InvalidArgument, std::move(message), {}}; }

bool plausible(const void* address) {
  constexpr std::uintptr_t kFirstPage = 4096;
  return reinterpret_cast<std::uintptr_t>(address) >= kFirstPage;
}

Status check_address(const void* address, const std::string& name) {
  if (plausible(address)) return {};
  return wrong(name + (address == nullptr ? " is NULL" : " is no address"));
}

Status check_items(const void* items, std::size_t count, const std::string& name) {
  if (count > kMostItems) return wrong("the number of " + name + ", " + std::to_string(count) + ", makes no sense");
  return count == 0 ? Status() : check_address(items, name);
}

Status check_text(const char* text, const char* name) { return check_address(text, name); }

Error wrong_object(const void* object, const std::string& name) {
  if (object == nullptr) return wrong(name + " is NULL");
  return wrong(name + " is not an object of its type: it was freed, or is another");
}

Status check_size(std::size_t size, std::size_t known, const std::string& name) {
  if (size >= sizeof(std::size_t) && size <= kLargestStruct) return {};
  return wrong(name + "->size is " + std::to_string(size) + ": set it to the struct's sizeof, which is " +
               std::to_string(known) + " in this library");
}

kiln_code deliver(const Error& said, kiln_error** error) noexcept {
  try {
    if (plausible(error)) *error = new kiln_error(said);
    return code_of(said.code);
  } catch (...) {
    return deliver_no_memory(error);
  }
}

kiln_code deliver_exception(kiln_error** error) noexcept {
  try {
    throw;
  } catch (const ResultError& thrown) {
    return deliver(thrown.error(), error);
  } catch (const std::bad_alloc&) {
    return deliver_no_memory(error);
  } catch (const std::exception& thrown) {
    try {
      return deliver(Error{Code::Internal, thrown.what(), {}}, error);
    } catch (...) {
      return deliver_no_memory(error);
    }
  } catch (...) {
    return deliver(Error{Code::Internal, "unknown", {}}, error);
  }
}

Result<std::chrono::nanoseconds> limit_of(std::int64_t timeout_ns) {
  if (timeout_ns < 0) return wrong("a limit of time is not negative; KILN_FOREVER is none");
  // A moment that far away could not be said in nanoseconds since the machine was started.
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365 * 100);
  const std::chrono::nanoseconds limit(timeout_ns);
  return limit > kLongest ? kForever : limit;
}

Result<Target> target_of(const Unit& unit, const char* text) {
  if (Status there = check_text(text, "target"); !there) return std::move(there).error();
  if (unit.kind() != "opencl") return Target::parse(text);
  if (*text == '\0') return wrong("target is empty");
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
  if (error != &kiln::c::no_memory()) kiln::c::end(error);
}
