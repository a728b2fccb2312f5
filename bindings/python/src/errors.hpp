// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <typeinfo>
#include <utility>

#include <nanobind/nanobind.h>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

namespace kiln::python {

namespace nb = nanobind;

/// Raises the exception of kiln/errors.py for the code. `unit` is the requested unit, for the source line of a compiler
/// message; can be null.
[[noreturn]] void raise(const Error& error, const Unit* unit = nullptr);

/// Raises TypeError: "`expected`, not <type of given>".
[[noreturn]] void raise_wrong_type(const char* expected, nb::handle given);

/// Converts an argument, or raises TypeError. `expected` is for example "memory must be a kiln.runtime.Memory".
template <class T>
T cast_argument(nb::handle given, const char* expected) {
  try {
    return nb::cast<T>(given);
  } catch (const std::bad_cast&) {
    raise_wrong_type(expected, given);
  }
}

/// Returns the value, or raises the exception.
template <class T>
T unwrap(Result<T> result, const Unit* unit = nullptr) {
  if (!result) raise(result.error(), unit);
  return *std::move(result);
}
inline void unwrap(const Status& status) {
  if (!status) raise(status.error());
}

}  // namespace kiln::python
