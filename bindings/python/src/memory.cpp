// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <string_view>

namespace kiln::python {
namespace {

bool lies_in_one_piece(const AnyArray& array) {
  std::int64_t expected = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != expected) return false;
    expected *= static_cast<std::int64_t>(array.shape(i));
  }
  return true;
}

// Returns true for an array that has a buffer, but not a contiguous one.
bool has_gaps(nb::handle object) {
  Py_buffer view{};
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_FULL_RO) != 0) {
    PyErr_Clear();
    return false;
  }
  const bool found = PyBuffer_IsContiguous(&view, 'C') == 0;
  PyBuffer_Release(&view);
  return found;
}

[[noreturn]] void reject_gaps(nb::handle object, bool writable) {
  const char* const advice = writable ? "pass a contiguous array" : "pass numpy.ascontiguousarray(…)";
  throw nb::type_error(("this " + type_name_of(object) + " is not contiguous; " + advice).c_str());
}

// Returns what the elements are if a device cannot use their bytes, otherwise null.
const char* unusable_elements(const Py_buffer& view) {
  const std::string_view format = view.format != nullptr ? view.format : "B";
  if (format == "O") return "Python objects";
  const bool is_swapped = view.itemsize > 1 && (format.starts_with('>') || format.starts_with('!'));
  return is_swapped ? "numbers in big-endian byte order" : nullptr;
}

}  // namespace

std::string type_name_of(nb::handle object) {
  return nb::cast<std::string>(nb::str(nb::getattr(object.type(), "__name__")));
}

HostSpan::HostSpan(nb::handle object, bool writable) {
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    take_buffer(object, writable);
  } else {
    take_dlpack(object, writable);
  }
  std::size_t elements = 1;
  for (const std::size_t length : shape_) elements *= length;
  if (elements * element_.size != size_) shape_ = {size_};
}

void HostSpan::take_buffer(nb::handle object, bool writable) {
  const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) {
    nb::python_error error;
    if (has_gaps(object)) reject_gaps(object, writable);
    throw error;
  }
  if (const char* const what = unusable_elements(view_); what != nullptr) {
    PyBuffer_Release(&view_);
    throw nb::type_error(
        ("this " + type_name_of(object) + " holds " + what + "; convert it, for example with .astype('float32')")
            .c_str());
  }
  data_ = view_.buf;
  size_ = static_cast<std::size_t>(view_.len);
  element_ = element_of_format(view_.format, static_cast<std::size_t>(view_.itemsize));
  for (int i = 0; i < view_.ndim; ++i) shape_.push_back(static_cast<std::size_t>(view_.shape[i]));
}

void HostSpan::take_dlpack(nb::handle object, bool writable) {
  const std::string who = type_name_of(object);
  if (!nb::hasattr(object, "__dlpack__")) {
    throw nb::type_error(("expected host memory: an object with the buffer protocol or DLPack, not " + who).c_str());
  }
  // Without `ro`, nanobind rejects a read-only array.
  AnyArray array;
  if (writable) {
    array = AnyArray(nb::cast<nb::ndarray<>>(object));
  } else {
    array = nb::cast<AnyArray>(object);
  }
  if (!is_on_host(array)) throw nb::type_error(("expected host memory; this " + who + " is on a device").c_str());
  if (!lies_in_one_piece(array)) reject_gaps(object, writable);
  data_ = const_cast<void*>(array.data());
  size_ = array.nbytes();
  const auto type = array.dtype();
  element_ = element_of_dlpack(type.code, type.bits, type.lanes);
  for (std::size_t i = 0; i < array.ndim(); ++i) shape_.push_back(array.shape(i));
  owner_ = nb::cast(array);
}

HostSpan::~HostSpan() {
  if (view_.obj != nullptr) PyBuffer_Release(&view_);
}

}  // namespace kiln::python
