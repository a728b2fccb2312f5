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
  return BufferObject(unwrap(std::move(copied)));
}

void check_size(std::size_t host, std::size_t device) {
  if (host <= device) return;
  throw nb::value_error(
      ("the host memory has " + std::to_string(host) + " bytes and the buffer " + std::to_string(device)).c_str());
}

nb::object download(const StreamObject& self, const BufferObject& buffer, nb::object to) {
  if (to.is_none()) {
    to = nb::steal(PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(buffer.get().size())));
    if (!to.is_valid()) throw nb::python_error();
  }
  const HostSpan host(to, true);
  check_size(host.size(), buffer.get().size());
  unwrap(call_without_gil([&] { return self.get().download(host.data(), buffer.get(), host.size()); }));
  return to;
}

nb::dict array_interface(const BufferObject& self) {
  nb::dict interface;
  interface["shape"] = nb::make_tuple(self.get().size());
  interface["typestr"] = "|u1";
  interface["data"] = nb::make_tuple(number_of(self.get().native()), false);
  interface["version"] = 3;
  return interface;
}

void bind_buffer(nb::module_& module) {
  nb::class_<BufferObject>(module, "Buffer", "Device memory that is freed in stream order.")
      .def_prop_ro("handle", [](const BufferObject& self) { return number_of(self.get().native()); })
      .def_prop_ro("size", [](const BufferObject& self) { return self.get().size(); })
      .def_prop_ro("__cuda_array_interface__", &array_interface)
      .def("close", &BufferObject::destroy, "Frees the memory now.")
      .def("__len__", [](const BufferObject& self) { return self.get().size(); });
  nb::class_<LocalMemory>(module, "LocalMemory", "A kernel argument that reserves OpenCL local memory.")
      .def(
          "__init__", [](LocalMemory* self, std::size_t bytes) { new (self) LocalMemory{bytes}; }, nb::arg("bytes"))
      .def_ro("bytes", &LocalMemory::bytes);
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
      .def_prop_ro("handle", [](const StreamObject& self) { return number_of(self.get().native()); })
      .def_prop_ro("backend", [](const StreamObject& self) { return to_string(self.backend); })
      .def("__cuda_stream__",
           [](const StreamObject& self) {
             if (self.backend != Backend::Cuda) throw nb::type_error("this is an OpenCL stream");
             return nb::make_tuple(0, number_of(self.get().native()));
           })
      .def(
          "allocate",
          [](const StreamObject& self, std::size_t bytes) {
            return BufferObject(unwrap(call_without_gil([&] { return self.get().allocate(bytes); })));
          },
          nb::arg("bytes"))
      .def("copy_of", &copy_of, nb::arg("data"),
           "Allocates device memory and copies `data` (buffer protocol or DLPack) into it.")
      .def(
          "upload",
          [](const StreamObject& self, const BufferObject& to, nb::handle data) {
            const HostSpan host(data, false);
            check_size(host.size(), to.get().size());
            unwrap(call_without_gil([&] { return self.get().upload(to.get(), host.data(), host.size()); }));
          },
          nb::arg("to"), nb::arg("data"))
      .def("download", &download, nb::arg("buffer"), nb::arg("to") = nb::none(),
           "Fills `to`, or a new bytearray, and returns it.")
      .def("synchronize",
           [](const StreamObject& self) { unwrap(call_without_gil([&] { return self.get().synchronize(); })); });
}

}  // namespace kiln::python
