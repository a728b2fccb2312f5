#include "memory.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "stream_object.hpp"

namespace kiln::python {
namespace {

using AnyArray = nb::ndarray<nb::ro>;

bool is_on_host(const AnyArray& array) { return array.device_type() == nb::device::cpu::value; }

bool lies_in_one_piece(const AnyArray& array) {
  std::int64_t expected = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != expected) return false;
    expected *= static_cast<std::int64_t>(array.shape(i));
  }
  return true;
}

std::string called(nb::handle object) { return nb::cast<std::string>(nb::str(nb::getattr(object.type(), "__name__"))); }

// Size of a number if the kernel does not report its parameter sizes.
constexpr std::size_t kUsualSize = 4;

}  // namespace

HostSpan::HostSpan(nb::handle object, bool writable) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    take_dlpack(object, writable);
    return;
  }
  const int flags = PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
  data_ = view_.buf;
  size_ = static_cast<std::size_t>(view_.len);
}

void HostSpan::take_dlpack(nb::handle object, bool writable) {
  const std::string who = called(object);
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
  if (!lies_in_one_piece(array)) throw nb::type_error(("this " + who + " is not contiguous").c_str());
  data_ = const_cast<void*>(array.data());
  size_ = array.nbytes();
  owner_ = nb::cast(array);
}

HostSpan::~HostSpan() {
  if (view_.obj != nullptr) PyBuffer_Release(&view_);
}

bool Arguments::ask_for_sizes(const nb::args& args) {
  for (nb::handle value : args) {
    if (PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr())) return true;
  }
  return false;
}

Arguments::Arguments(const nb::args& args, const std::vector<std::size_t>& sizes) {
  list_.reserve(args.size() + 1);
  for (std::size_t i = 0; i < args.size(); ++i) add(args[i], i < sizes.size() ? sizes[i] : 0);
}

void Arguments::keep(const void* bytes, std::size_t size) {
  const auto* first = static_cast<const unsigned char*>(bytes);
  values_.emplace_back(first, first + size);
  list_.push_back({values_.back().data(), size});
}

void Arguments::add(nb::handle value, std::size_t size) {
  if (PyLong_Check(value.ptr())) return add_integer(value, size);
  // numpy.float64 is a float to Python, but its size is known.
  if (PyFloat_CheckExact(value.ptr())) return add_float(value, size);
  if (value.is_none()) {
    const void* const null = nullptr;
    return keep(&null, sizeof null);
  }
  if (nb::isinstance<LocalMemory>(value)) {
    list_.push_back(argument_of(nb::cast<LocalMemory>(value)));
    return;
  }
  if (add_device_memory(value) || add_plain_bytes(value)) return;
  throw nb::type_error(("argument " + std::to_string(list_.size()) + " is of type " + called(value) +
                        ", which is not a number, device memory or bytes of a known size")
                           .c_str());
}

void Arguments::add_integer(nb::handle value, std::size_t size) {
  const auto reject = [&] {
    throw nb::value_error(("argument " + std::to_string(list_.size()) + " does not fit into the " +
                           std::to_string(size) + " bytes of its parameter")
                              .c_str());
  };
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (number == -1 && overflow == 0 && PyErr_Occurred() != nullptr) throw nb::python_error();
  std::uint64_t bits = static_cast<std::uint64_t>(number);
  if (overflow > 0) {
    bits = PyLong_AsUnsignedLongLong(value.ptr());
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
  }
  const bool is_small = overflow == 0 && number >= std::numeric_limits<std::int32_t>::min() &&
                        number <= std::numeric_limits<std::uint32_t>::max();
  if (size == 0) size = is_small ? kUsualSize : sizeof bits;
  if (overflow < 0 || size > sizeof bits) reject();
  if (size < sizeof bits) {
    const long long top = 1LL << (8 * size);
    if (overflow != 0 || number >= top || number < -(top / 2)) reject();
  }
  keep(&bits, size);  // little-endian, as on all hosts of CUDA
}

void Arguments::add_float(nb::handle value, std::size_t size) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (size == sizeof number) return keep(&number, sizeof number);
  if (size != 0 && size != sizeof(float)) {
    throw nb::value_error(("argument " + std::to_string(list_.size()) + " is a float and its parameter has " +
                           std::to_string(size) + " bytes; pass a numpy scalar or a ctypes value")
                              .c_str());
  }
  const float narrow = static_cast<float>(number);
  keep(&narrow, sizeof narrow);
}

bool Arguments::add_device_memory(nb::handle value) {
  if (nb::isinstance<BufferObject>(value)) {
    void* const memory = nb::cast<BufferObject&>(value).get().native();
    keep(&memory, sizeof memory);
    return true;
  }
  if (const nb::object interface = nb::getattr(value, "__cuda_array_interface__", nb::none()); !interface.is_none()) {
    const auto pointer = nb::cast<std::uintptr_t>(interface["data"][0]);
    keep(&pointer, sizeof pointer);
    return true;
  }
  // Host arrays support DLPack too; the following code rejects them.
  AnyArray array;
  if (!nb::hasattr(value, "__dlpack__") || !nb::try_cast(value, array) || is_on_host(array)) return false;
  const void* const pointer = array.data();
  keep(&pointer, sizeof pointer);
  owners_.push_back(nb::cast(array));
  return true;
}

bool Arguments::add_plain_bytes(nb::handle value) {
  if (PyObject_CheckBuffer(value.ptr()) == 0) return false;
  Py_buffer view;
  if (PyObject_GetBuffer(value.ptr(), &view, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  const bool is_value = view.ndim == 0 || PyBytes_Check(value.ptr());
  if (is_value) keep(view.buf, static_cast<std::size_t>(view.len));
  PyBuffer_Release(&view);
  if (is_value) return true;
  throw nb::type_error(("argument " + std::to_string(list_.size()) + " is host memory (" + called(value) +
                        "); a kernel takes device memory: use stream.copy_of(…)")
                           .c_str());
}

}  // namespace kiln::python
