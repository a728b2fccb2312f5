#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include <kiln/kernel.hpp>

#include "base/clock.hpp"

/// The way out of the interpreter and back. A thread that comes back while the interpreter ends is ended by it in the
/// middle of whatever it does, which C++ answers with std::terminate; so from the interpreter's `atexit` on nobody
/// comes back: threads of Python's stay where they are until the process ends, and nobody is told of events any more.
namespace kiln::python {

namespace nb = nanobind;

/// The interpreter is not held while this lives. Every call of kiln's that may take a lock or wait is made under one:
/// whoever is told of events holds such locks and asks for the interpreter.
class Released {
 public:
  Released();
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

  /// Comes back for a moment to let signal handlers run. False when one of them raised; the exception is then set.
  bool signals_are_fine();

 private:
  PyThreadState* state_;
};

/// The interpreter is held while this lives, by a thread that is none of Python's; not when it is ending.
class Held {
 public:
  Held();
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  explicit operator bool() const { return state_.has_value(); }

 private:
  std::optional<PyGILState_STATE> state_;
};

/// Whether the calling thread is the one in which Python runs signal handlers.
bool is_main_thread();

/// Called by the interpreter's `atexit`, and in the child of a fork.
void close_gate();
void reopen_gate();

/// The calling line of Python, for as long as this lives.
class PythonCaller {
 public:
  PythonCaller();
  operator Caller() const { return caller_; }  // NOLINT(google-explicit-constructor): it is one where one is meant

 private:
  nb::object file_;
  Caller caller_;
};

/// Calls a function without holding the interpreter. Where it waits, signals are seen to: a handler that raises, as
/// that of Ctrl-C does, ends the wait.
template <class Function>
auto waiting(const Function& function) {
  bool raised = false;
  auto result = [&] {
    Released released;
    std::optional<Attention> attention;
    if (is_main_thread()) {
      attention.emplace([&] {
        raised = !released.signals_are_fine();
        return !raised;
      });
    }
    return function();
  }();
  if (raised) throw nb::python_error();
  return result;
}

/// The same for what does not wait for others.
template <class Function>
auto without_interpreter(const Function& function) {
  const Released released;
  return function();
}

/// What Python calls a timeout: seconds, or None for no limit. It is never kForever, because kiln opens drivers for
/// those who have no limit on their own threads, where no signal ends it.
std::chrono::nanoseconds limit_of(std::optional<double> seconds);

}  // namespace kiln::python
