// SPDX-License-Identifier: Apache-2.0

#include <limits>

#include "arguments.hpp"
#include "bindings.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "memory.hpp"
#include "session_object.hpp"
#include "stream_object.hpp"

namespace kiln::python {
namespace {

// Converts one number or up to three. `what` is "grid", "block" or "cluster".
Dim3 dimensions(nb::handle value, const char* what) {
  const auto size_of = [&](nb::handle size) {
    return static_cast<unsigned>(whole_number(size, what, std::numeric_limits<unsigned>::max()));
  };
  if (PyIndex_Check(value.ptr()) != 0) return size_of(value);
  if (PyObject_HasAttrString(value.ptr(), "__iter__") == 0 || PyUnicode_Check(value.ptr())) {
    throw nb::type_error(
        (std::string(what) + " must be an integer or up to three of them, not " + type_name_of(value)).c_str());
  }
  Dim3 out = 1;
  unsigned* const places[] = {&out.x, &out.y, &out.z};
  std::size_t count = 0;
  for (nb::handle one : nb::iter(value)) {
    if (count == 3) throw nb::value_error("a grid, a block or a cluster has at most three dimensions");
    *places[count++] = size_of(one);
  }
  if (count == 0) throw nb::value_error("a grid, a block or a cluster has at least one dimension");
  return out;
}

Backend launch_backend(const KernelObject& self) {
  return self.kernel.target().form == Form::OpenClBinary ? Backend::OpenCl : Backend::Cuda;
}

std::shared_ptr<const KernelParameters> parameters_of(const KernelObject& self) {
  if (self.parameters == nullptr) {
    self.parameters = unwrap(call_without_gil([&] { return self.kernel.parameters(); }));
  }
  return self.parameters;
}

// Returns "float by", as in the source.
std::string declaration_of(const KernelParameter& parameter) {
  std::string text = !parameter.type.empty() ? parameter.type
                     : parameter.size != 0   ? std::to_string(parameter.size) + " bytes"
                                             : "unknown";
  return parameter.name.empty() ? text : text + " " + parameter.name;
}

struct LaunchArguments {
  std::size_t shared_bytes = 0;
  nb::handle cluster;
  bool cooperative = false;
  bool programmatic = false;
  int priority = 0;
};

void launch(const KernelObject& self, const nb::args& args, nb::handle grid_size, nb::handle block_size,
            nb::handle stream, const LaunchArguments& more) {
  if (stream.is_none()) {
    throw nb::type_error("a launch needs a stream, not None; kiln.default_stream is CUDA's default stream");
  }
  const Dim3 grid = dimensions(grid_size, "grid");
  const Dim3 block = dimensions(block_size, "block");
  const Backend backend = launch_backend(self);
  LaunchConfig config(Grid(grid.x, grid.y, grid.z), Block(block.x, block.y, block.z),
                      StreamRef::from_native(native_stream(stream, backend)), more.shared_bytes);
  if (!more.cluster.is_none()) config.cluster = dimensions(more.cluster, "cluster");
  config.cooperative = more.cooperative;
  config.programmatic = more.programmatic;
  config.priority = more.priority;
  const std::shared_ptr<const KernelParameters> parameters = parameters_of(self);
  if (!parameters->empty() && args.size() != parameters->size()) {
    std::string declared;
    for (const KernelParameter& parameter : *parameters) {
      declared += (declared.empty() ? "" : ", ") + declaration_of(parameter);
    }
    raise({Code::InvalidArgument,
           "cannot launch " + self.kernel.name() + ": it takes " + std::to_string(parameters->size()) +
               " arguments, but the call has " + std::to_string(args.size()) + "; pass (" + declared + ")",
           {}});
  }
  const Arguments arguments(self.kernel.name(), backend, args, *parameters);
  unwrap(call_without_gil([&] { return self.kernel.launch_raw(config, arguments.data(), arguments.size()); }));
}

// Reads the artifact from the store if its bytes were dropped after the kernel was loaded.
Artifact artifact_of(const KernelObject& self) {
  const PythonCaller caller;
  return unwrap(call_interruptible(
                    limit_of(std::nullopt),
                    [&](Wait wait) { return self.session->artifact(self.unit, self.kernel.target(), wait, caller); }),
                &self.unit);
}

nb::bytes cubin_of(const KernelObject& self) {
  const Artifact artifact = artifact_of(self);
  if (artifact.target.form == Form::Cubin) return bytes_of(artifact.bytes);
  raise({Code::Unsupported,
         "kernel '" + self.kernel.name() + "' was built from " + to_string(artifact.target.form) +
             ", not from a cubin: use .binary",
         {}});
}

const char* kind_name(const KernelParameter& parameter) {
  switch (parameter.kind) {
    case KernelParameter::Kind::Unknown: break;
    case KernelParameter::Kind::Integer: return "integer";
    case KernelParameter::Kind::Float: return "float";
    case KernelParameter::Kind::Pointer: return "pointer";
    case KernelParameter::Kind::LocalMemory: return "local_memory";
  }
  return "unknown";
}

std::string described_kernel(const KernelObject& self) {
  std::string text = "<kiln.Kernel " + self.kernel.name() + "(";
  // Only what a launch has asked for: the question can need a context.
  if (self.parameters != nullptr) {
    for (const KernelParameter& parameter : *self.parameters) {
      text += (text.back() == '(' ? "" : ", ") + declaration_of(parameter);
    }
  } else {
    text += "…";
  }
  return text + ") of '" + self.unit.label() + "' for " + self.kernel.target().name() + ">";
}

void bind_parameter(nb::module_& module) {
  nb::class_<KernelParameter>(module, "KernelParameter",
                              "A parameter of a kernel, as far as the compiler and the driver report it.")
      .def_ro("name", &KernelParameter::name, "Name in the source; empty if it is not reported.")
      .def_ro("type", &KernelParameter::type, "Type as in the source; empty if it is not reported.")
      .def_prop_ro("kind", &kind_name, "'integer', 'float', 'pointer', 'local_memory' or 'unknown'.")
      .def_ro("size", &KernelParameter::size, "Size in bytes; 0 if it is not reported.")
      .def("__str__", &declaration_of)
      .def("__repr__",
           [](const KernelParameter& self) { return "<kiln.KernelParameter " + declaration_of(self) + ">"; });
}

}  // namespace

KernelObject get_kernel(const SharedSession& session, const Unit& unit, const std::string& entry,
                        std::optional<double> timeout, nb::handle stream) {
  const bool anywhere = stream.is_none();
  if (anywhere) {
    if (std::optional<Kernel> ready = session->try_get(unit, entry)) return {session, unit, *std::move(ready)};
  }
  const PythonCaller caller;
  const Backend backend = unit.kind() == "opencl" ? Backend::OpenCl : Backend::Cuda;
  const StreamRef native = StreamRef::from_native(native_stream(stream, backend));
  return unwrap(call_interruptible(limit_of(timeout),
                                   [&](Wait wait) -> Result<KernelObject> {
                                     const KernelHandle handle = session->handle(unit, entry);
                                     Result<Kernel> kernel = anywhere ? handle.get(wait, caller)
                                                                      : handle.get_for_stream(native, wait, caller);
                                     if (!kernel) return std::move(kernel).error();
                                     return KernelObject{session, unit, *std::move(kernel)};
                                   }),
                &unit);
}

void bind_kernel(nb::module_& module) {
  bind_parameter(module);
  nb::class_<KernelObject>(module, "Kernel", "A kernel that can be launched. It keeps its session alive.")
      .def(
          "launch",
          [](const KernelObject& self, const nb::args& args, nb::handle grid, nb::handle block, nb::handle stream,
             std::size_t shared_bytes, nb::handle cluster, bool cooperative, bool programmatic, int priority) {
            launch(self, args, grid, block, stream, {shared_bytes, cluster, cooperative, programmatic, priority});
          },
          nb::arg("args"), nb::arg("grid"), nb::arg("block"), nb::arg("stream").none(), nb::arg("shared_bytes") = 0,
          nb::arg("cluster") = nb::none(), nb::arg("cooperative") = false, nb::arg("programmatic") = false,
          nb::arg("priority") = 0,
          "Launches the kernel on the stream without waiting for it. Raises TypeError for an argument that does not "
          "match its parameter.")
      .def_prop_ro(
          "name", [](const KernelObject& self) { return self.kernel.name(); }, "Name of the entry.")
      .def_prop_ro(
          "unit", [](const KernelObject& self) { return self.unit; }, "The unit that contains it.")
      .def_prop_ro(
          "target", [](const KernelObject& self) { return self.kernel.target(); },
          "Target of the device that it is compiled for.")
      .def_prop_ro(
          "handle", [](const KernelObject& self) { return number_of(self.kernel.native()); },
          "CUkernel or cl_kernel, as a number.")
      .def_prop_ro(
          "function",
          [](const KernelObject& self) {
            return number_of(unwrap(call_without_gil([&] { return self.kernel.function(); })));
          },
          "CUfunction in the current context, or cl_kernel, as a number.")
      .def_prop_ro(
          "parameters", [](const KernelObject& self) { return *parameters_of(self); },
          "The parameters as far as the compiler and the driver report them; launches are checked against them.")
      .def_prop_ro(
          "parameter_sizes",
          [](const KernelObject& self) {
            return unwrap(call_without_gil([&] { return self.kernel.parameter_sizes(); }));
          },
          "Size in bytes of each parameter; empty if one of them is not reported.")
      .def(
          "occupancy",
          [](const KernelObject& self, std::size_t shared_bytes) {
            return unwrap(call_without_gil([&] { return self.kernel.occupancy(shared_bytes); }));
          },
          nb::arg("shared_bytes") = 0,
          "Returns the block size and the grid size that the driver suggests for this much dynamic shared memory.")
      .def_prop_ro("artifact", &artifact_of, "The compiled code of the unit.")
      .def_prop_ro(
          "binary", [](const KernelObject& self) { return bytes_of(artifact_of(self).bytes); },
          "The bytes of the compiled code.")
      .def_prop_ro("cubin", &cubin_of, "The bytes of the cubin; Unsupported for other forms of code.")
      .def("__repr__", &described_kernel);
}

}  // namespace kiln::python
