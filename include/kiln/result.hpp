#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include <kiln/export.hpp>

namespace kiln {

/// Error codes. A cache miss is not an error and has no code.
enum class Code {
  InvalidArgument,  ///< the caller passed an invalid value
  Unsupported,      ///< valid, but not supported on this machine or by this library
  Unavailable,      ///< a required library, program, device or directory is missing, or memory ran out
  CompileFailed,    ///< the compiler rejected the unit; `Error::log` has its output
  Denied,           ///< policy or permissions forbid it (compiling is off, a directory is not trusted)
  Io,               ///< an operating system call failed
  Corrupt,          ///< the bytes fail verification
  TimedOut,
  Cancelled,
  LoadRejected,  ///< the driver rejects the code (wrong architecture, newer PTX, no matching image)
  /// the stream is capturing a graph, and the call would have to load, allocate or wait; do it before the capture
  Capturing,
  Internal,  ///< a bug in kiln
};

/// Returns the stable, documented name of a code, as JSON output and logs show it.
KILN_API const char* to_string(Code code);

/// An error code with a message and, for a failed compile, the compiler output.
struct Error {
  Code code = Code::Internal;
  std::string message;  ///< human-readable; names the next step if there is one
  std::string log;      ///< output of the compiler, if one ran
};

/// The exception that `Result::value()` throws, for callers that prefer exceptions. Inside kiln no exception
/// crosses a module boundary.
class KILN_API ResultError : public std::runtime_error {
 public:
  explicit ResultError(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

/// Either a value or an Error. Not thread-safe.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

  T& value() & {
    if (!ok()) throw ResultError(error());
    return **this;
  }
  T&& value() && {
    if (!ok()) throw ResultError(error());
    return std::move(**this);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT(google-explicit-constructor)

  bool ok() const noexcept { return ok_; }
  explicit operator bool() const noexcept { return ok_; }
  const Error& error() const& { return error_; }
  Error&& error() && { return std::move(error_); }
  void value() const {
    if (!ok_) throw ResultError(error_);
  }

 private:
  Error error_;
  bool ok_ = true;
};

/// The result of a function that returns no value.
using Status = Result<void>;

}  // namespace kiln
