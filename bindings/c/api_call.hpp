// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "c/objects.hpp"

/// Helpers that every call of kiln.h uses: they check the arguments before use, and turn every failure into a code and
/// an error. Nothing here throws except when memory runs out, which `run_call` turns into an error too.
namespace kiln::c {

/// Maximum length of an array that a caller passes. Larger values are rejected as invalid.
inline constexpr std::size_t kMaxItems = 1 << 20;
/// Maximum size of a struct that a caller passes, in this and all later versions.
inline constexpr std::size_t kMaxStructBytes = 4096;

Error invalid_argument(std::string message);

/// Returns false for NULL and for small numbers that cannot be addresses.
bool is_plausible_pointer(const void* address);
Status check_address(const void* address, const std::string& name);
/// Checks an array. It can be NULL if it has no items.
Status check_items(const void* items, std::size_t count, const std::string& name);
Status check_text(const char* text, const char* name);
Error wrong_object(const void* object, const std::string& name);
Status check_size(std::size_t size, std::size_t known, const std::string& name);
/// Returns the code of an error and stores the error in `*error`, unless `error` is NULL.
kiln_code set_error(const Error& said, kiln_error** error) noexcept;
kiln_code deliver_exception(kiln_error** error) noexcept;

/// The caller in events if the program does not name one.
inline constexpr Caller kUnnamedCaller{"a C program", 0};

/// Converts a caller's nanoseconds to the library's time limit.
Result<std::chrono::nanoseconds> limit_of(std::int64_t timeout_ns);
/// Returns the backend for a caller's value.
Result<Backend> backend_of(kiln_backend backend);
/// Returns the target that a caller names for a unit.
Result<Target> target_of(const Unit& unit, const char* text);

template <class T>
bool is(const T* object) {
  return is_plausible_pointer(object) && reinterpret_cast<std::uintptr_t>(object) % alignof(T) == 0 &&
         object->mark == T::kTypeTag;
}

template <class T>
Status check(const T* object, const std::string& name) {
  if (is(object)) return {};
  return wrong_object(object, name);
}

/// Checks the output parameter of a call and sets it to NULL, which it stays unless the call succeeds.
template <class T>
Status check_place(T** place, const char* name) {
  if (Status there = check_address(place, name); !there) return there;
  *place = nullptr;
  return {};
}

/// Runs the body of a call, which returns a Status.
template <class Body>
kiln_code run_call(kiln_error** error, const Body& body) noexcept {
  try {
    const Status done = body();
    if (!done) return set_error(done.error(), error);
    if (is_plausible_pointer(error)) *error = nullptr;
    return KILN_OK;
  } catch (...) {
    return deliver_exception(error);
  }
}

/// Destroys an object. Ignores anything that is not an object of its type.
template <class T>
void destroy(T* object) noexcept {
  if (is(object)) delete object;
}

/// Reads a struct of a caller, which can have fewer or more fields than this library knows.
template <class T>
Status read_struct(const T* given, const std::string& name, T& read) {
  if (Status there = check_address(given, name); !there) return there;
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (Status right = check_size(size, sizeof(T), name); !right) return right;
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](unsigned char byte) { return byte != 0; })) {
    return Error{
        Code::Unsupported, name + " has fields that this library does not know: the library is older than kiln.h", {}};
  }
  read = T{};
  std::memcpy(static_cast<void*>(&read), given, std::min(size, sizeof(T)));
  return {};
}

template <class T>
Status write_struct(T value, T* to, const std::string& name) {
  if (Status there = check_address(to, name); !there) return there;
  std::size_t size = 0;
  std::memcpy(&size, to, sizeof size);
  if (Status right = check_size(size, sizeof(T), name); !right) return right;
  value.size = size;
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(static_cast<void*>(to), &value, std::min(size, sizeof(T)));
  return {};
}

}  // namespace kiln::c
