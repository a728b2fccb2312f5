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

/// What every call of kiln.h does: look at what it was given before it uses it, and turn whatever goes wrong into a
/// code and an error. Nothing here throws but for want of memory, which `answer` turns into an error too.
namespace kiln::c {

/// No array that is handed in is longer. What says otherwise is no length.
inline constexpr std::size_t kMostItems = 1 << 20;
/// No struct that is handed in is larger, in any version to come.
inline constexpr std::size_t kLargestStruct = 4096;

Error wrong(std::string message);

/// Whether something may lie there: neither NULL nor a small number that was taken for an address.
bool plausible(const void* address);
Status check_address(const void* address, const std::string& name);
/// An array: of no items it may be NULL.
Status check_items(const void* items, std::size_t count, const std::string& name);
Status check_text(const char* text, const char* name);
Error wrong_object(const void* object, const std::string& name);
Status check_size(std::size_t size, std::size_t known, const std::string& name);
/// The code of a failure, for whose error there is a place in `*error` unless `error` is NULL.
kiln_code deliver(const Error& said, kiln_error** error) noexcept;
kiln_code deliver_exception(kiln_error** error) noexcept;

/// Who asked, where nobody said so.
inline constexpr Caller kUnnamedCaller{"a C program", 0};

/// The nanoseconds that a caller gave, as the library takes them.
Result<std::chrono::nanoseconds> limit_of(std::int64_t timeout_ns);
/// The target that a caller names for a unit.
Result<Target> target_of(const Unit& unit, const char* text);

template <class T>
bool is(const T* object) {
  return plausible(object) && reinterpret_cast<std::uintptr_t>(object) % alignof(T) == 0 && object->mark == T::kMark;
}

template <class T>
Status check(const T* object, const std::string& name) {
  if (is(object)) return {};
  return wrong_object(object, name);
}

/// The place for an object that a call gives, which is NULL from here on until the call has succeeded.
template <class T>
Status check_place(T** place, const char* name) {
  if (Status there = check_address(place, name); !there) return there;
  *place = nullptr;
  return {};
}

/// Runs the body of a call, which returns a Status.
template <class Body>
kiln_code answer(kiln_error** error, const Body& body) noexcept {
  try {
    const Status done = body();
    if (!done) return deliver(done.error(), error);
    if (plausible(error)) *error = nullptr;
    return KILN_OK;
  } catch (...) {
    return deliver_exception(error);
  }
}

/// Ends an object. What is none is left alone.
template <class T>
void end(T* object) noexcept {
  if (is(object)) delete object;
}

/// A struct of a caller's, who may know of fewer fields or of more than this library.
template <class T>
Status read_struct(const T* given, const std::string& name, T& read) {
  if (Status there = check_address(given, name); !there) return there;
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (Status right = check_size(size, sizeof(T), name); !right) return right;
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](unsigned char byte) { return byte != 0; })) {
    return Error{Code::Unsupported, name + " has fields that this library does not know: it is older than kiln.h", {}};
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
