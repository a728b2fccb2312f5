// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <cstring>
#include <limits>

#include "memory.hpp"
#include "stream_object.hpp"

namespace kiln::python {
namespace {

using Kind = KernelParameter::Kind;

// Size of a number if the kernel does not report its parameters.
constexpr std::size_t kUsualSize = 4;
// No memory begins below this address, so that a smaller number is not a pointer. 0 is: an empty tensor has it.
constexpr std::uint64_t kFirstAddress = 4096;

std::string repr_of(nb::handle value) {
  std::string text = nb::cast<std::string>(nb::repr(value));
  return text.size() <= 40 ? text : "…";
}

// Returns true for a number that has no room for a pointer. An integer of that size can be a CUdeviceptr.
bool is_only_number(const KernelParameter& parameter) {
  return parameter.kind == Kind::Float || (parameter.kind == Kind::Integer && parameter.size != sizeof(void*));
}

std::string array_text(nb::handle value, const ElementType& element) {
  return "a " + type_name_of(value) + " of " + element.name();
}

// Returns what to write for a number of the parameter's type.
std::string number_advice(const KernelParameter& parameter) {
  const ElementType type{parameter.kind == Kind::Float ? 'f' : 'i', parameter.size};
  return "write numpy." + type.name() + "(…)";
}

}  // namespace

Arguments::Arguments(const std::string& kernel, Backend backend, const nb::args& args,
                     const KernelParameters& parameters)
    : kernel_(kernel), backend_(backend) {
  static const KernelParameter unknown;
  // The launch rejects another number of arguments.
  const bool known = args.size() == parameters.size();
  list_.reserve(args.size() + 1);
  for (std::size_t i = 0; i < args.size(); ++i) add(args[i], known ? parameters[i] : unknown);
}

void Arguments::reject(const KernelParameter& parameter, const std::string& given, const std::string& advice) const {
  const std::string index = std::to_string(list_.size());
  const std::string name = parameter.name.empty() ? index : "'" + parameter.name + "'";
  const std::string type =
      parameter.type.empty() ? " has " + std::to_string(parameter.size) + " bytes" : " is '" + parameter.type + "'";
  throw nb::type_error(("cannot launch " + kernel_ + ": argument " + index + " is " + given + ", but parameter " +
                        name + type + "; " + advice)
                           .c_str());
}

void Arguments::check_backend(nb::handle value, Backend given) const {
  if (given == backend_) return;
  throw nb::type_error(("cannot launch " + kernel_ + ": argument " + std::to_string(list_.size()) + " is a " +
                        type_name_of(value) + " of " + display_name(given) + ", but the kernel is for " +
                        display_name(backend_) + "; copy the array with session.stream('" + to_string(backend_) +
                        "').copy_of(…)")
                           .c_str());
}

void Arguments::keep(const void* bytes, std::size_t size) {
  const std::size_t rounded = (size + 7) / 8 * 8;
  if (rounded <= few_.size() - used_) {
    std::memcpy(few_.data() + used_, bytes, size);
    list_.push_back({few_.data() + used_, size});
    used_ += rounded;
    return;
  }
  const auto* first = static_cast<const unsigned char*>(bytes);
  many_.emplace_back(first, first + size);
  list_.push_back({many_.back().data(), size});
}

void Arguments::add(nb::handle value, const KernelParameter& parameter) {
  if (PyLong_Check(value.ptr())) return add_integer(value, parameter);
  // numpy.float64 is a float to Python, but its size is known.
  if (PyFloat_CheckExact(value.ptr())) return add_float(value, parameter);
  if (nb::isinstance<BufferObject>(value)) {
    const auto& buffer = nb::cast<const BufferObject&>(value);
    check_backend(value, buffer.backend);
    return add_pointer(buffer.get().native(), buffer.element, value, parameter);
  }
  if (value.is_none()) return add_null(parameter);
  if (nb::isinstance<LocalMemory>(value)) return add_local_memory(value, parameter);
  if (add_value(value, parameter) || add_device_memory(value, parameter)) return;
  const std::string what = "cannot launch " + kernel_ + ": argument " + std::to_string(list_.size());
  if (PyObject_CheckBuffer(value.ptr()) != 0) {
    throw nb::type_error(
        (what + " is host memory (" + type_name_of(value) + "); a kernel takes device memory: use stream.copy_of(…)")
            .c_str());
  }
  throw nb::type_error(
      (what + " is of type " + type_name_of(value) + ", which is not a number, device memory or bytes of a known size")
          .c_str());
}

void Arguments::add_integer(nb::handle value, const KernelParameter& parameter) {
  std::size_t size = parameter.size;
  const auto does_not_fit = [&] {
    throw nb::value_error(("cannot launch " + kernel_ + ": argument " + std::to_string(list_.size()) +
                           " does not fit into the " + std::to_string(size) + " bytes of its parameter" +
                           (parameter.name.empty() ? "" : " '" + parameter.name + "'"))
                              .c_str());
  };
  if (parameter.kind == Kind::Float) {
    const bool is_plain = PyLong_CheckExact(value.ptr()) && repr_of(value) != "…";
    reject(parameter, "the int " + repr_of(value),
           "write " + (is_plain ? repr_of(value) + ".0" : "float(" + repr_of(value) + ")"));
  }
  if (parameter.kind == Kind::LocalMemory) {
    reject(parameter, "the int " + repr_of(value), "write kiln.LocalMemory(" + repr_of(value) + ")");
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (number == -1 && overflow == 0 && PyErr_Occurred() != nullptr) throw nb::python_error();
  std::uint64_t bits = static_cast<std::uint64_t>(number);
  if (overflow > 0) {
    bits = PyLong_AsUnsignedLongLong(value.ptr());
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
  }
  if (parameter.kind == Kind::Pointer && overflow == 0 && bits != 0 && bits < kFirstAddress) {
    reject(parameter, "the int " + repr_of(value), "write an array on the device, for example stream.copy_of(…)");
  }
  const bool is_small = overflow == 0 && number >= std::numeric_limits<std::int32_t>::min() &&
                        number <= std::numeric_limits<std::uint32_t>::max();
  if (size == 0) size = is_small ? kUsualSize : sizeof bits;
  if (overflow < 0 || size > sizeof bits) does_not_fit();
  if (size < sizeof bits) {
    const long long top = 1LL << (8 * size);
    if (overflow != 0 || number >= top || number < -(top / 2)) does_not_fit();
  }
  keep(&bits, size);  // little-endian, as on all hosts of CUDA
}

void Arguments::add_float(nb::handle value, const KernelParameter& parameter) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (parameter.kind == Kind::Integer)
    reject(parameter, "the float " + repr_of(value), "write int(" + repr_of(value) + ")");
  if (parameter.kind == Kind::Pointer || parameter.kind == Kind::LocalMemory) {
    reject(parameter, "the float " + repr_of(value), "write an array on the device, for example stream.copy_of(…)");
  }
  if (parameter.size == sizeof number) return keep(&number, sizeof number);
  if (parameter.size != 0 && parameter.size != sizeof(float)) {
    reject(parameter, "the float " + repr_of(value), "write a numpy scalar or a ctypes value of that size");
  }
  const float narrow = static_cast<float>(number);
  keep(&narrow, sizeof narrow);
}

void Arguments::add_null(const KernelParameter& parameter) {
  if (is_only_number(parameter)) reject(parameter, "None", "write a number");
  if (parameter.kind == Kind::LocalMemory) reject(parameter, "None", "write kiln.LocalMemory(…)");
  const void* const null = nullptr;
  keep(&null, sizeof null);
}

void Arguments::add_local_memory(nb::handle value, const KernelParameter& parameter) {
  if (parameter.kind != Kind::LocalMemory && parameter.kind != Kind::Unknown) {
    reject(parameter, "a LocalMemory", "only a parameter of type 'local …*' takes it");
  }
  list_.push_back(argument_of(nb::cast<LocalMemory>(value)));
}

bool Arguments::add_value(nb::handle value, const KernelParameter& parameter) {
  if (PyObject_CheckBuffer(value.ptr()) == 0) return false;
  struct View : Py_buffer {
    ~View() { PyBuffer_Release(this); }
  } view{};
  if (PyObject_GetBuffer(value.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();  // an array that is not contiguous
    return false;
  }
  const bool untyped = PyBytes_Check(value.ptr()) != 0;
  if (view.ndim != 0 && !untyped) return false;
  const auto size = static_cast<std::size_t>(view.len);
  const ElementType element = element_of_format(view.format, size);
  const bool takes_number = parameter.kind == Kind::Float || parameter.kind == Kind::Integer;
  const bool is_other_kind = takes_number && !untyped && (element.letter == 'f') != (parameter.kind == Kind::Float);
  const bool is_other_size = parameter.size != 0 && parameter.size != size;
  if (parameter.kind == Kind::LocalMemory) reject(parameter, "a " + type_name_of(value), "write kiln.LocalMemory(…)");
  if (is_other_kind || is_other_size) {
    reject(parameter, "a " + type_name_of(value) + " of " + std::to_string(size) + " bytes",
           takes_number ? number_advice(parameter) : "write a value of that size");
  }
  keep(view.buf, size);
  return true;
}

void Arguments::add_pointer(const void* pointer, const ElementType& element, nb::handle value,
                            const KernelParameter& parameter) {
  if (is_only_number(parameter)) reject(parameter, array_text(value, element), "write a number");
  if (parameter.kind == Kind::LocalMemory) {
    reject(parameter, array_text(value, element), "write kiln.LocalMemory(…)");
  }
  if (!fits(element, parameter)) {
    const ElementType wanted{parameter.element == Kind::Float ? 'f' : 'i', parameter.element_size};
    const bool is_buffer = nb::isinstance<BufferObject>(value);
    const std::string bytes = is_buffer ? "buffer.handle" : "a view of it as uint8";
    reject(parameter, array_text(value, element),
           "convert the array to " + wanted.name() + (is_buffer ? " before stream.copy_of" : "") + ", or pass " +
               bytes + " if the kernel reads the bytes as they are");
  }
  keep(&pointer, sizeof pointer);
}

bool Arguments::add_device_memory(nb::handle value, const KernelParameter& parameter) {
  if (const nb::object interface = nb::getattr(value, "__cuda_array_interface__", nb::none()); !interface.is_none()) {
    check_backend(value, Backend::Cuda);
    const auto pointer = nb::cast<std::uintptr_t>(interface["data"][0]);
    add_pointer(reinterpret_cast<const void*>(pointer),
                element_of_interface(nb::cast<std::string>(interface["typestr"])), value, parameter);
    return true;
  }
  // Host arrays support DLPack too; the caller rejects them.
  AnyArray array;
  if (!nb::hasattr(value, "__dlpack__") || !nb::try_cast(value, array) || is_on_host(array)) return false;
  check_backend(value, array.device_type() == nb::device::opencl::value ? Backend::OpenCl : Backend::Cuda);
  const auto type = array.dtype();
  add_pointer(array.data(), element_of_dlpack(type.code, type.bits, type.lanes), value, parameter);
  owners_.push_back(nb::cast(array));
  return true;
}

}  // namespace kiln::python
