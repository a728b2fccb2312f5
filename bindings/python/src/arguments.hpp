// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include <kiln/backend.hpp>
#include <kiln/kernel.hpp>

#include "element_type.hpp"

namespace kiln::python {

namespace nb = nanobind;

/// The arguments of a launch: their values, and the objects that must live until the launch has started. Not
/// thread-safe.
class Arguments {
 public:
  /// Raises TypeError for an argument that the type or the size of its parameter excludes, and ValueError for a number
  /// that is too large for it. Memory of the other backend is a TypeError. `parameters` is empty if they are not known;
  /// both must outlive the object.
  Arguments(const std::string& kernel, Backend backend, const nb::args& args, const KernelParameters& parameters);
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  const Argument* data() const { return list_.data(); }
  std::size_t size() const { return list_.size(); }

 private:
  void add(nb::handle value, const KernelParameter& parameter);
  void add_integer(nb::handle value, const KernelParameter& parameter);
  void add_float(nb::handle value, const KernelParameter& parameter);
  void add_null(const KernelParameter& parameter);
  void add_local_memory(nb::handle value, const KernelParameter& parameter);
  /// Adds a numpy scalar, a ctypes value or bytes. Returns false if the object is something else.
  bool add_value(nb::handle value, const KernelParameter& parameter);
  /// Adds an array of another library. Returns false if the object is something else.
  bool add_device_memory(nb::handle value, const KernelParameter& parameter);
  void add_pointer(const void* pointer, const ElementType& element, nb::handle value, const KernelParameter& parameter);
  void keep(const void* bytes, std::size_t size);
  /// Raises TypeError for memory of the other backend.
  void check_backend(nb::handle value, Backend given) const;

  /// Raises TypeError: `given` is the argument, `advice` what to write instead.
  [[noreturn]] void reject(const KernelParameter& parameter, const std::string& given, const std::string& advice) const;

  const std::string& kernel_;
  const Backend backend_;
  std::vector<Argument> list_;
  std::vector<nb::object> owners_;
  // The values. Most kernels need no allocation.
  alignas(8) std::array<unsigned char, 256> few_;
  std::size_t used_ = 0;
  std::deque<std::vector<unsigned char>> many_;
};

}  // namespace kiln::python
