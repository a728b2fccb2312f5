// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <string>
#include <vector>

#include "element_type.hpp"

namespace kiln::python {

namespace nb = nanobind;

using AnyArray = nb::ndarray<nb::ro>;

inline bool is_on_host(const AnyArray& array) { return array.device_type() == nb::device::cpu::value; }

/// Returns the name of an object's type.
std::string type_name_of(nb::handle object);

/// Contiguous host memory of a Python object, not copied: by the buffer protocol, otherwise by DLPack. Valid for the
/// lifetime of this object. The GIL must be held to create and destroy it.
class HostSpan {
 public:
  /// Raises TypeError if the object has no host memory, if it is not contiguous, or, for `writable`, if it is
  /// read-only.
  HostSpan(nb::handle object, bool writable);
  ~HostSpan();
  HostSpan(const HostSpan&) = delete;
  HostSpan& operator=(const HostSpan&) = delete;

  void* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// The elements. Structures are bytes, and the shape is then the number of bytes.
  const ElementType& element() const { return element_; }
  const std::vector<std::size_t>& shape() const { return shape_; }

 private:
  void take_buffer(nb::handle object, bool writable);
  void take_dlpack(nb::handle object, bool writable);

  Py_buffer view_{};
  nb::object owner_;  // owner of a DLPack tensor
  void* data_ = nullptr;
  std::size_t size_ = 0;
  ElementType element_;
  std::vector<std::size_t> shape_;
};

}  // namespace kiln::python
