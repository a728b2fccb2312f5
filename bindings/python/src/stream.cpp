// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

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
  return {unwrap(std::move(copied)), host.element(), host.shape()};
}

std::vector<std::size_t> shape_of(nb::handle size) {
  if (PyLong_Check(size.ptr())) return {nb::cast<std::size_t>(size)};
  std::vector<std::size_t> shape;
  for (nb::handle length : nb::iter(size)) shape.push_back(nb::cast<std::size_t>(length));
  return shape;
}

BufferObject allocate(const StreamObject& self, nb::handle size, nb::handle dtype) {
  if (dtype.is_none() && PyLong_Check(size.ptr()) == 0) {
    throw nb::type_error("allocate() needs a number of bytes, or a shape and a dtype");
  }
  const ElementType element = dtype.is_none() ? ElementType() : element_of_dtype(dtype);
  std::vector<std::size_t> shape = shape_of(size);
  std::size_t bytes = element.size;
  for (const std::size_t length : shape) {
    if (__builtin_mul_overflow(bytes, length, &bytes)) throw nb::value_error("the shape has too many elements");
  }
  return {unwrap(call_without_gil([&] { return self.get().allocate(bytes); })), element, std::move(shape)};
}

void check_match(const HostSpan& host, const BufferObject& buffer) {
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
  check_match(host, buffer);
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
  check_match(host, to);
  unwrap(call_without_gil([&] { return self.get().upload(to.get(), host.data(), host.size()); }));
}

nb::dict array_interface(const BufferObject& self) {
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
      .def("__repr__", &described_buffer);
  nb::class_<LocalMemory>(module, "LocalMemory", "A kernel argument that reserves OpenCL local memory.")
      .def(
          "__init__", [](LocalMemory* self, std::size_t bytes) { new (self) LocalMemory{bytes}; }, nb::arg("bytes"))
      .def_ro("bytes", &LocalMemory::bytes, "Size for each work group.")
      .def("__repr__", [](const LocalMemory& self) { return "kiln.LocalMemory(" + std::to_string(self.bytes) + ")"; });
}

}  // namespace

void* native_stream(nb::handle stream) {
  if (stream.is_none()) return nullptr;
  if (nb::isinstance<StreamObject>(stream)) return nb::cast<StreamObject&>(stream).get().native();
  nb::object number = nb::borrow(stream);
  if (nb::hasattr(stream, "__cuda_stream__")) {
    const nb::object protocol = nb::getattr(stream, "__cuda_stream__");
    // A method by the protocol; an attribute in its early drafts.
    const nb::object answer = PyCallable_Check(protocol.ptr()) != 0 ? protocol() : protocol;
    number = answer[1];
  }
  if (PyLong_Check(number.ptr()) == 0) {
    throw nb::type_error("a stream must be a number, a kiln.Stream or an object with __cuda_stream__");
  }
  return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(number));
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
