// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>

#include "bindings.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "memory.hpp"
#include "stream_object.hpp"

namespace kiln::python {
namespace {

BufferObject copy_of(const StreamObject& self, nb::handle data) {
  const HostSpan host(data, false);
  auto copied = call_without_gil([&] { return self.get().copy_of(host.data(), host.size()); });
  return {unwrap(std::move(copied)), self.backend, host.element(), host.shape()};
}

std::vector<std::size_t> shape_of(nb::handle size) {
  const auto length_of = [](nb::handle length) {
    return static_cast<std::size_t>(
        whole_number(length, "the size of a buffer", std::numeric_limits<std::size_t>::max()));
  };
  if (PyIndex_Check(size.ptr()) != 0) return {length_of(size)};
  std::vector<std::size_t> shape;
  for (nb::handle length : nb::iter(size)) shape.push_back(length_of(length));
  return shape;
}

BufferObject allocate(const StreamObject& self, nb::handle size, nb::handle dtype) {
  if (dtype.is_none() && PyIndex_Check(size.ptr()) == 0) {
    throw nb::type_error("allocate() needs a number of bytes, or a shape and a dtype");
  }
  const ElementType element = dtype.is_none() ? ElementType() : element_of_dtype(dtype);
  std::vector<std::size_t> shape = shape_of(size);
  std::size_t bytes = element.size;
  for (const std::size_t length : shape) {
    if (__builtin_mul_overflow(bytes, length, &bytes)) throw nb::value_error("the shape has too many elements");
  }
  Buffer buffer = unwrap(call_without_gil([&] { return self.get().allocate(bytes); }));
  return {std::move(buffer), self.backend, element, std::move(shape)};
}

void check_match(const StreamObject& stream, const HostSpan& host, const BufferObject& buffer) {
  if (stream.backend != buffer.backend) {
    throw nb::type_error((std::string("the stream is for ") + display_name(stream.backend) + " and the buffer for " +
                          display_name(buffer.backend) + "; use the stream that allocated the buffer")
                             .c_str());
  }
  if (host.size() > buffer.get().size()) {
    throw nb::value_error(("the host memory has " + std::to_string(host.size()) + " bytes and the buffer " +
                           std::to_string(buffer.get().size()))
                              .c_str());
  }
  if (fits(host.element(), buffer.element)) return;
  throw nb::type_error(("the host memory has elements of type " + host.element().name() + " and the buffer of type " +
                        buffer.element.name() + "; convert the array with .astype('" + buffer.element.name() + "')")
                           .c_str());
}

nb::object download(const StreamObject& self, const BufferObject& buffer, nb::object to) {
  if (to.is_none()) {
    to = nb::steal(PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(buffer.get().size())));
    if (!to.is_valid()) throw nb::python_error();
  }
  const HostSpan host(to, true);
  check_match(self, host, buffer);
  unwrap(call_without_gil([&] { return self.get().download(host.data(), buffer.get(), host.size()); }));
  return to;
}

nb::object to_numpy(const StreamObject& self, const BufferObject& buffer) {
  nb::object array =
      nb::module_::import_("numpy").attr("empty")(nb::tuple(nb::cast(buffer.shape)), buffer.element.interface_name());
  return download(self, buffer, std::move(array));
}

void upload(const StreamObject& self, const BufferObject& to, nb::handle data) {
  const HostSpan host(data, false);
  check_match(self, host, to);
  unwrap(call_without_gil([&] { return self.get().upload(to.get(), host.data(), host.size()); }));
}

nb::dict array_interface(const BufferObject& self) {
  // hasattr() is then False: the handle of OpenCL memory is not an address.
  if (self.backend != Backend::Cuda) throw nb::attribute_error("OpenCL memory has no __cuda_array_interface__");
  nb::dict interface;
  interface["shape"] = nb::tuple(nb::cast(self.shape));
  interface["typestr"] = self.element.interface_name();
  interface["data"] = nb::make_tuple(number_of(self.get().native()), false);
  interface["version"] = 3;
  return interface;
}

std::string described_buffer(const BufferObject& self) {
  if (self.is_closed()) return "<kiln.Buffer, closed>";
  std::string text = "<kiln.Buffer of " + std::to_string(self.get().size()) + " bytes";
  if (!self.element.is_bytes()) {
    text += ": " + self.element.name() + " (";
    for (const std::size_t length : self.shape) text += std::to_string(length) + ",";
    if (self.shape.size() > 1) text.pop_back();
    text += ")";
  }
  return text + ">";
}

void bind_buffer(nb::module_& module) {
  nb::class_<BufferObject>(module, "Buffer", "Device memory that is freed in stream order.")
      .def_prop_ro(
          "handle", [](const BufferObject& self) { return number_of(self.get().native()); },
          "CUdeviceptr or cl_mem, as a number.")
      .def_prop_ro(
          "size", [](const BufferObject& self) { return self.get().size(); }, "Size in bytes.")
      .def_prop_ro(
          "dtype", [](const BufferObject& self) { return self.element.interface_name(); },
          "Type of the elements as numpy's type string, for example '<f4'; '|u1' for bytes.")
      .def_prop_ro(
          "shape", [](const BufferObject& self) { return nb::tuple(nb::cast(self.shape)); },
          "Number of elements in each dimension.")
      .def_prop_ro("__cuda_array_interface__", &array_interface)
      .def(
          "close", [](BufferObject& self) { self.destroy(); }, "Frees the memory now.")
      .def("__len__", [](const BufferObject& self) { return self.get().size(); })
      // Without it, numpy makes an array of one Python object.
      .def("__array__",
           [](const BufferObject&, const nb::args&, const nb::kwargs&) -> nb::object {
             throw nb::type_error("numpy cannot read device memory; use stream.to_numpy(buffer)");
           })
      .def("__repr__", &described_buffer);
  nb::class_<LocalMemory>(module, "LocalMemory", "A kernel argument that reserves OpenCL local memory.")
      .def(
          "__init__", [](LocalMemory* self, std::size_t bytes) { new (self) LocalMemory{bytes}; }, nb::arg("bytes"))
      .def_ro("bytes", &LocalMemory::bytes, "Size for each work group.")
      .def("__repr__", [](const LocalMemory& self) { return "kiln.LocalMemory(" + std::to_string(self.bytes) + ")"; });
}

}  // namespace

std::uint64_t whole_number(nb::handle value, const char* what, std::uint64_t largest) {
  if (PyIndex_Check(value.ptr()) == 0) {
    throw nb::type_error((std::string(what) + " must be an integer, not " + type_name_of(value)).c_str());
  }
  const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  const std::uint64_t converted = PyLong_AsUnsignedLongLong(number.ptr());
  const bool failed = PyErr_Occurred() != nullptr;
  if (failed) PyErr_Clear();  // OverflowError: negative or too large
  if (failed || converted > largest) {
    const auto text = nb::cast<std::string>(nb::str(number));
    throw nb::value_error(
        (std::string(what) + " must be from 0 to " + std::to_string(largest) + ", not " + text).c_str());
  }
  return converted;
}

void* native_stream(nb::handle stream, Backend backend) {
  if (stream.is_none()) return nullptr;
  const auto check = [&](Backend given) {
    if (given == backend) return;
    throw nb::type_error((std::string("the kernel is for ") + display_name(backend) + " and the stream for " +
                          display_name(given) + "; pass session.stream('" + to_string(backend) + "')")
                             .c_str());
  };
  if (nb::isinstance<StreamObject>(stream)) {
    check(nb::cast<StreamObject&>(stream).backend);
    return nb::cast<StreamObject&>(stream).get().native();
  }
  nb::object number = nb::borrow(stream);
  if (nb::hasattr(stream, "__cuda_stream__")) {
    check(Backend::Cuda);
    const nb::object protocol = nb::getattr(stream, "__cuda_stream__");
    // A method by the protocol; an attribute in its early drafts.
    const nb::object answer = PyCallable_Check(protocol.ptr()) != 0 ? protocol() : protocol;
    number = answer[1];
  }
  if (PyIndex_Check(number.ptr()) == 0) {
    throw nb::type_error("a stream must be a number, a kiln.Stream or an object with __cuda_stream__");
  }
  return reinterpret_cast<void*>(
      static_cast<std::uintptr_t>(whole_number(number, "a stream", std::numeric_limits<std::uintptr_t>::max())));
}

void bind_stream(nb::module_& module) {
  bind_buffer(module);
  nb::class_<StreamObject>(module, "Stream", "A stream that also allocates memory, for programs that have neither.")
      .def_prop_ro(
          "handle", [](const StreamObject& self) { return number_of(self.get().native()); },
          "CUstream or cl_command_queue, as a number.")
      .def_prop_ro(
          "backend", [](const StreamObject& self) { return to_string(self.backend); }, "'cuda' or 'opencl'.")
      .def("__cuda_stream__",
           [](const StreamObject& self) {
             if (self.backend != Backend::Cuda) throw nb::type_error("this is an OpenCL stream");
             return nb::make_tuple(0, number_of(self.get().native()));
           })
      .def("allocate", &allocate, nb::arg("size"), nb::arg("dtype") = nb::none(),
           "Allocates device memory: `size` bytes, or an array of the shape `size` with elements of numpy's `dtype`.")
      .def("copy_of", &copy_of, nb::arg("data"),
           "Allocates device memory and copies `data` (a numpy array, or what has the buffer protocol or DLPack) into "
           "it. The buffer has the type and the shape of the array.")
      .def("upload", &upload, nb::arg("to"), nb::arg("data"), "Copies `data` to the beginning of a buffer.")
      .def("download", &download, nb::arg("buffer"), nb::arg("to") = nb::none(),
           "Fills `to`, or a new bytearray, and returns it.")
      .def("to_numpy", &to_numpy, nb::arg("buffer"),
           "Returns a new numpy array with the type, the shape and the content of a buffer.")
      .def(
          "synchronize",
          [](const StreamObject& self) { unwrap(call_without_gil([&] { return self.get().synchronize(); })); },
          "Waits until all work on the stream is complete.")
      .def("__repr__", [](const StreamObject& self) {
        return std::string("<kiln.Stream ") + to_string(self.backend) + " at " +
               std::to_string(number_of(self.get().native())) + ">";
      });
}

}  // namespace kiln::python
