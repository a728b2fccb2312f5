// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include <kiln/kernel.hpp>

/// Releasing and acquiring the GIL. The interpreter ends a thread that acquires the GIL during finalization in the
/// middle of its work, which C++ turns into std::terminate. Therefore, from the interpreter's `atexit` on, no thread
/// acquires it again: Python threads stay blocked until the process ends, and event callbacks are no longer called.
namespace kiln::python {

namespace nb = nanobind;

/// Releases the GIL for the lifetime of the object. Every call of kiln that can take a lock or wait is made under one,
/// because an event callback acquires the GIL while its thread holds such locks. Not thread-safe.
class GilRelease {
 public:
  GilRelease();
  ~GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

  /// Acquires the GIL for a moment and runs signal handlers. Returns false if one of them raised; the exception is then
  /// set.
  bool run_signal_handlers();

 private:
  PyThreadState* state_;
};

/// Acquires the GIL for the lifetime of the object, on a thread that Python did not create. Acquires nothing while the
/// interpreter is finalizing. Not thread-safe.
class GilAcquire {
 public:
  GilAcquire();
  ~GilAcquire();
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;
  explicit operator bool() const { return state_.has_value(); }

 private:
  std::optional<PyGILState_STATE> state_;
};

/// Returns a reference that any thread can release: the object is released while the GIL can be acquired, and otherwise
/// not at all.
std::shared_ptr<nb::object> keep_for_threads(nb::object object);

/// Returns true if the calling thread is the one in which Python runs signal handlers.
bool is_main_thread();

/// Returns the function of a `Wait`: it runs signal handlers, and sets `raised` and returns false if one of them
/// raised. Empty on threads in which Python runs no signal handlers.
std::function<bool()> signal_check(GilRelease& released, bool& raised);

/// Called by the interpreter's `atexit`, and in the child of a fork.
void block_gil_reacquire();
void allow_gil_reacquire();

/// The calling line of Python code, valid for the lifetime of the object.
class PythonCaller {
 public:
  PythonCaller();
  operator Caller() const { return caller_; }  // NOLINT(google-explicit-constructor): it is one where one is meant

 private:
  nb::object file_;
  Caller caller_;
};

/// Calls a function that waits, without holding the GIL. It gets a `Wait` during which signal handlers run; a handler
/// that raises, such as that of Ctrl-C, ends the wait.
template <class Function>
auto call_interruptible(std::chrono::nanoseconds timeout, const Function& function) {
  bool raised = false;
  auto result = [&] {
    GilRelease released;
    const std::function<bool()> keep_waiting = signal_check(released, raised);
    return function(Wait(timeout, keep_waiting));
  }();
  if (raised) throw nb::python_error();
  return result;
}

/// Same as `call_interruptible`, for functions that do not wait for other threads.
template <class Function>
auto call_without_gil(const Function& function) {
  const GilRelease released;
  return function();
}

/// Converts a Python timeout: seconds, or None for no limit. Never returns kForever, because without a limit kiln opens
/// drivers on the calling thread, where a signal cannot interrupt it.
std::chrono::nanoseconds limit_of(std::optional<double> seconds);

}  // namespace kiln::python
