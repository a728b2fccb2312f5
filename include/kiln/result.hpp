#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include <kiln/export.hpp>

namespace kiln {

/// Why something could not be done. Absence (a cache miss) is a value, never one of these.
enum class Code {
  InvalidArgument,  ///< the caller asked for something that makes no sense
  Unsupported,      ///< it makes sense, but not on this machine or with this library
  Unavailable,      ///< a library, program, device or directory that is needed is not there, or no memory is left
  CompileFailed,    ///< the compiler ran and said no; `Error::log` has what it said
  Refused,          ///< policy says no (compiling is off, a directory cannot be trusted)
  Io,               ///< the operating system said no
  Corrupt,          ///< bytes that are not what they claim to be
  TimedOut,
  Cancelled,
  LoadRefused,  ///< the driver does not take these bytes (another architecture, a newer PTX, no image)
  Capturing,    ///< the stream records a graph, and this would have to load, allocate or wait: do it before
  Internal,     ///< a bug in kiln
};

/// The stable, documented name of a code, as JSON output and logs show it.
KILN_API const char* to_string(Code code);

struct Error {
  Code code = Code::Internal;
  std::string message;  ///< one sentence for a person, with what to do next where that is known
  std::string log;      ///< what a compiler printed, if one ran
};

/// What `Result::value()` throws, for those who prefer exceptions. kiln itself never throws across its rooms.
class KILN_API ResultError : public std::runtime_error {
 public:
  explicit ResultError(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

/// Either a value or an Error. Not thread-safe, like any other value.
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

using Status = Result<void>;

}  // namespace kiln
