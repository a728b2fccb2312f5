// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
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

  friend bool operator==(const Error& a, const Error& b) {
    return a.code == b.code && a.message == b.message && a.log == b.log;
  }
  friend bool operator!=(const Error& a, const Error& b) { return !(a == b); }
};

/// The exception that `Result::value()` throws, for callers that prefer exceptions. `what()` is the message, followed
/// by the compiler's log if there is one.
class KILN_API ResultError : public std::runtime_error {
 public:
  explicit ResultError(Error error)
      : std::runtime_error(error.log.empty() ? error.message : error.message + '\n' + error.log),
        error_(std::move(error)) {}
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

template <class T>
class Result;

namespace detail {

template <class T>
struct IsResult : std::false_type {};
template <class T>
struct IsResult<Result<T>> : std::true_type {};
template <class T>
using Bare = std::remove_cv_t<std::remove_reference_t<T>>;

/// The members that Result<T> and Result<void> share: those that call a function with the value or with the error.
template <class Derived>
class ResultMembers {
 public:
  /// Returns what `function` makes of the value, which is a Result, or the error.
  template <class F>
  auto and_then(F&& function) & {
    return and_then_of(self(), std::forward<F>(function));
  }
  template <class F>
  auto and_then(F&& function) const& {
    return and_then_of(self(), std::forward<F>(function));
  }
  template <class F>
  auto and_then(F&& function) && {
    return and_then_of(std::move(self()), std::forward<F>(function));
  }

  /// Returns a Result with what `function` makes of the value, or the error.
  template <class F>
  auto transform(F&& function) & {
    return transform_of(self(), std::forward<F>(function));
  }
  template <class F>
  auto transform(F&& function) const& {
    return transform_of(self(), std::forward<F>(function));
  }
  template <class F>
  auto transform(F&& function) && {
    return transform_of(std::move(self()), std::forward<F>(function));
  }

  /// Returns the value, or what `function` makes of the error, which is a Result of the same type.
  template <class F>
  Derived or_else(F&& function) const& {
    return self().has_value() ? self() : Derived(std::invoke(std::forward<F>(function), self().error()));
  }
  template <class F>
  Derived or_else(F&& function) && {
    if (self().has_value()) return std::move(self());
    return std::invoke(std::forward<F>(function), std::move(self()).error());
  }

  /// Returns the value, or the Error that `function` makes of the error.
  template <class F>
  Derived transform_error(F&& function) const& {
    return self().has_value() ? self() : Derived(Error(std::invoke(std::forward<F>(function), self().error())));
  }
  template <class F>
  Derived transform_error(F&& function) && {
    if (self().has_value()) return std::move(self());
    return Error(std::invoke(std::forward<F>(function), std::move(self()).error()));
  }

  /// Returns the error, or `other` if there is a value.
  [[nodiscard]] Error error_or(Error other) const& { return self().has_value() ? std::move(other) : self().error(); }
  [[nodiscard]] Error error_or(Error other) && {
    return self().has_value() ? std::move(other) : std::move(self()).error();
  }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
  const Derived& self() const { return static_cast<const Derived&>(*this); }

  template <class F, class Self>
  static decltype(auto) call(F&& function, Self&& self) {
    if constexpr (std::is_void_v<typename Derived::value_type>) {
      return std::invoke(std::forward<F>(function));
    } else {
      return std::invoke(std::forward<F>(function), *std::forward<Self>(self));
    }
  }
  template <class Self, class F>
  static auto and_then_of(Self&& self, F&& function) {
    using Next = Bare<decltype(call(std::forward<F>(function), std::forward<Self>(self)))>;
    static_assert(IsResult<Next>::value, "the function of and_then returns a Result; use transform for a value");
    if (!self.has_value()) return Next(std::forward<Self>(self).error());
    return Next(call(std::forward<F>(function), std::forward<Self>(self)));
  }
  template <class Self, class F>
  static auto transform_of(Self&& self, F&& function) {
    using Made = std::remove_cv_t<decltype(call(std::forward<F>(function), std::forward<Self>(self)))>;
    if (!self.has_value()) return Result<Made>(std::forward<Self>(self).error());
    if constexpr (std::is_void_v<Made>) {
      call(std::forward<F>(function), std::forward<Self>(self));
      return Result<Made>();
    } else {
      return Result<Made>(std::in_place, call(std::forward<F>(function), std::forward<Self>(self)));
    }
  }
};

}  // namespace detail

/// Either a value or an Error: `std::expected<T, Error>` for C++17. `*result`, `->` and `error()` require that it has
/// what they return; `value()` checks and throws. Not thread-safe.
template <class T>
class [[nodiscard]] Result : public detail::ResultMembers<Result<T>> {
  template <class U>
  static constexpr bool is_value_v =
      !detail::IsResult<detail::Bare<U>>::value && !std::is_same_v<detail::Bare<U>, Error> &&
      !std::is_same_v<detail::Bare<U>, std::in_place_t> && std::is_constructible_v<T, U>;

 public:
  using value_type = T;
  using error_type = Error;

  Result() = default;  ///< a default value, if T has one
  template <class U = T, std::enable_if_t<is_value_v<U> && std::is_convertible_v<U, T>, int> = 0>
  Result(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}  // NOLINT(google-explicit-constructor)
  template <class U = T, std::enable_if_t<is_value_v<U> && !std::is_convertible_v<U, T>, int> = 0>
  explicit Result(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  template <class... Arguments>
  explicit Result(std::in_place_t, Arguments&&... arguments)
      : state_(std::in_place_index<0>, std::forward<Arguments>(arguments)...) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  const T&& operator*() const&& noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  Error& error() & noexcept { return *std::get_if<1>(&state_); }
  const Error& error() const& noexcept { return *std::get_if<1>(&state_); }
  Error&& error() && noexcept { return std::move(*std::get_if<1>(&state_)); }
  const Error&& error() const&& noexcept { return std::move(*std::get_if<1>(&state_)); }

  /// Returns the value. Throws ResultError if there is none.
  T& value() & {
    if (!has_value()) throw ResultError(error());
    return **this;
  }
  const T& value() const& {
    if (!has_value()) throw ResultError(error());
    return **this;
  }
  T&& value() && {
    if (!has_value()) throw ResultError(std::move(error()));
    return std::move(**this);
  }
  const T&& value() const&& {
    if (!has_value()) throw ResultError(error());
    return std::move(**this);
  }
  template <class U>
  [[nodiscard]] T value_or(U&& other) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(other));
  }
  template <class U>
  [[nodiscard]] T value_or(U&& other) && {
    return has_value() ? std::move(**this) : static_cast<T>(std::forward<U>(other));
  }

  /// Replaces the value or the error by a value that is made of the arguments.
  template <class... Arguments>
  T& emplace(Arguments&&... arguments) noexcept {
    static_assert(std::is_nothrow_constructible_v<T, Arguments...>, "an exception would leave neither value nor error");
    return state_.template emplace<0>(std::forward<Arguments>(arguments)...);
  }

  template <class U, std::enable_if_t<!std::is_void_v<U>, int> = 0>
  friend bool operator==(const Result& a, const Result<U>& b) {
    if (a.has_value() != b.has_value()) return false;
    return a.has_value() ? *a == *b : a.error() == b.error();
  }
  template <class U, std::enable_if_t<!detail::IsResult<U>::value && !std::is_same_v<U, Error>, int> = 0>
  friend bool operator==(const Result& a, const U& b) {
    return a.has_value() && *a == b;
  }
  friend bool operator==(const Result& a, const Error& b) { return !a.has_value() && a.error() == b; }
  template <class U>
  friend bool operator!=(const Result& a, const U& b) {
    return !(a == b);
  }

 private:
  std::variant<T, Error> state_;
};

/// Success or an Error: `std::expected<void, Error>`. Not thread-safe.
template <>
class [[nodiscard]] Result<void> : public detail::ResultMembers<Result<void>> {
 public:
  using value_type = void;
  using error_type = Error;

  Result() = default;
  explicit Result(std::in_place_t) {}
  Result(Error error) : error_(std::move(error)), has_value_(false) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const noexcept { return has_value_; }
  explicit operator bool() const noexcept { return has_value_; }
  void operator*() const noexcept {}

  Error& error() & noexcept { return error_; }
  const Error& error() const& noexcept { return error_; }
  Error&& error() && noexcept { return std::move(error_); }
  const Error&& error() const&& noexcept { return static_cast<const Error&&>(error_); }

  /// Throws ResultError if there is an error.
  void value() const& {
    if (!has_value_) throw ResultError(error_);
  }
  void value() && {
    if (!has_value_) throw ResultError(std::move(error_));
  }
  /// Replaces the error by success.
  void emplace() noexcept { has_value_ = true; }

  friend bool operator==(const Result& a, const Result& b) {
    return a.has_value_ == b.has_value_ && (a.has_value_ || a.error_ == b.error_);
  }
  friend bool operator==(const Result& a, const Error& b) { return !a.has_value_ && a.error_ == b; }
  template <class U>
  friend bool operator!=(const Result& a, const U& b) {
    return !(a == b);
  }

 private:
  Error error_;
  bool has_value_ = true;
};

/// The result of a function that returns no value.
using Status = Result<void>;

}  // namespace kiln
