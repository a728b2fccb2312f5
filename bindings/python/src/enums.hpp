// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <initializer_list>
#include <string>

#include <kiln/operation_context.hpp>

namespace kiln::python {

namespace nb = nanobind;

/// Returns the value with this name, or raises ValueError with the valid names.
template <class Enum>
Enum parse_enum(const std::string& text, const char* what, std::initializer_list<Enum> values) {
  std::string names;
  for (const Enum value : values) {
    if (text == to_string(value)) return value;
    names += (names.empty() ? "" : ", ") + std::string(to_string(value));
  }
  throw nb::value_error((std::string(what) + " must be one of " + names + ", not '" + text + "'").c_str());
}

Residency residency_of(const std::string& text);
[[noreturn]] void raise_wrong_thread();

}  // namespace kiln::python
