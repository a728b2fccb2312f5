#pragma once

#include <utility>

#include <nanobind/nanobind.h>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

namespace kiln::python {

namespace nb = nanobind;

/// Raises the exception of kiln/errors.py that the code has. `unit` is the one that was asked for, for the line of its
/// source that a compiler complains about; may be null.
[[noreturn]] void raise(const Error& error, const Unit* unit = nullptr);

/// The value, or the exception.
template <class T>
T taken(Result<T> result, const Unit* unit = nullptr) {
  if (!result) raise(result.error(), unit);
  return *std::move(result);
}
inline void taken(const Status& status) {
  if (!status) raise(status.error());
}

}  // namespace kiln::python
