// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>

#include <kiln/kernel.hpp>

namespace kiln::python {

namespace nb = nanobind;

/// The type of the elements of an array, as in numpy's array interface: a letter (f, i, u, b or c) and a size. Bytes
/// whose meaning is not known are unsigned integers of one byte. A value type.
struct ElementType {
  char letter = 'u';
  std::size_t size = 1;

  /// Bytes can be read as anything.
  bool is_bytes() const { return size == 1; }
  std::string interface_name() const;  ///< "<f4"
  std::string name() const;            ///< "float32"
};

/// Returns the type of a format of the buffer protocol, or bytes for one that is not a number.
ElementType element_of_format(const char* format, std::size_t size);
/// Returns the type of a type string of numpy's array interface, or bytes for one that is not a number.
ElementType element_of_interface(const std::string& text);
/// Returns the type of a DLPack tensor, or bytes for one that is not a number.
ElementType element_of_dlpack(unsigned code, unsigned bits, unsigned lanes);
/// Returns the type of numpy's dtype, or of an object that numpy converts to one. Raises TypeError.
ElementType element_of_dtype(nb::handle dtype);

/// Returns whether an array of these elements can be read as an array of the others: the sign does not count.
bool fits(const ElementType& given, const ElementType& wanted);
/// Returns whether such an array can be passed for a pointer parameter. What is not known fits.
bool fits(const ElementType& given, const KernelParameter& parameter);

}  // namespace kiln::python
