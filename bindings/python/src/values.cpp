// SPDX-License-Identifier: Apache-2.0
// The value types: targets, artifacts, devices, status, events.
#include <cstdio>
#include <string>

#include <kiln/cccl.hpp>

#include "bindings.hpp"
#include "errors.hpp"
#include "session_object.hpp"

namespace kiln::python {
namespace {

void bind_target(nb::module_& module) {
  nb::class_<Target>(module, "Target", "The target of a compile: sm_90, compute_90, lto_90, or an OpenCL device.")
      .def("__init__", [](Target* self, const std::string& text) { new (self) Target(unwrap(Target::parse(text))); })
      .def_static("opencl", &Target::opencl, nb::arg("device"), "Returns the target of an OpenCL device by its name.")
      .def_prop_ro("name", &Target::name, "The name, for example 'sm_90'.")
      .def_prop_ro(
          "form", [](const Target& self) { return to_string(self.form); },
          "Form of the code: 'cubin', 'ptx', 'ltoir', 'opencl' or 'cccl'.")
      .def("__str__", &Target::name)
      .def("__repr__", [](const Target& self) { return "<kiln.Target " + self.name() + ">"; })
      .def("__hash__",
           [](const Target& self) { return static_cast<Py_hash_t>(std::hash<std::string>()(self.name()) >> 1); })
      .def(
          "__eq__",
          [](const Target& self, nb::handle other) {
            return nb::isinstance<Target>(other) && nb::cast<const Target&>(other) == self;
          },
          nb::arg("other").none());
}

nb::dict symbols_of(const Artifact& artifact) {
  nb::dict symbols;
  for (const EntryPoint& entry : artifact.entries) symbols[entry.name.c_str()] = entry.symbol;
  return symbols;
}

void bind_cccl(nb::module_& module) {
  nb::class_<cccl::ArtifactInfo>(module, "CcclInfo", "The description of a CCCL artifact.")
      .def_ro("spec", &cccl::ArtifactInfo::spec, "The spec as JSON.")
      .def_ro("release", &cccl::ArtifactInfo::release, "Release of cuda-cccl that compiled it.")
      .def_ro("capability", &cccl::ArtifactInfo::capability, "Compute capability, for example 90.")
      .def_ro("policy_bytes", &cccl::ArtifactInfo::policy_bytes, "Size of the runtime policy.")
      .def_ro("kernels", &cccl::ArtifactInfo::kernels, "Lowered names of the kernels.")
      .def("__repr__", [](const cccl::ArtifactInfo& self) {
        return "<kiln.CcclInfo capability " + std::to_string(self.capability) + ", runtime policy " +
               std::to_string(self.policy_bytes) + " bytes, " + std::to_string(self.kernels.size()) + " kernels>";
      });
  module.def(
      "cuda_compute_bytes",
      [](const std::vector<Artifact>& artifacts) { return bytes_of(unwrap(cccl::cuda_compute_bytes(artifacts))); },
      nb::arg("artifacts"), "The artifacts of one CCCL spec in the form that cuda.compute.deserialize reads.");
}

void bind_artifact(nb::module_& module) {
  nb::class_<Artifact>(module, "Artifact", "The result of a compile: the code for a target, and the names in it.")
      .def_prop_ro(
          "bytes", [](const Artifact& self) { return bytes_of(self.bytes); }, "The code.")
      .def_prop_ro(
          "target", [](const Artifact& self) { return self.target; }, "The target that it is for.")
      .def_prop_ro(
          "form", [](const Artifact& self) { return to_string(self.target.form); },
          "Form of the code: 'cubin', 'ptx', 'ltoir', 'opencl' or 'cccl'.")
      .def_prop_ro("symbols", &symbols_of, "The symbol of each entry, by its name in the source.")
      .def_prop_ro(
          "cccl",
          [](const Artifact& self) -> std::optional<cccl::ArtifactInfo> {
            if (self.target.form != Form::Cccl) return std::nullopt;
            return unwrap(cccl::artifact_info(self));
          },
          "The description of a CCCL algorithm; None for other artifacts.")
      .def_prop_ro(
          "library_bytes", [](const Artifact& self) { return bytes_of(unwrap(cccl::library_bytes(self))); },
          "The serialized form of the CCCL library itself.")
      .def_prop_ro(
          "unit", [](const Artifact& self) { return self.metadata.unit; }, "Name of the unit.")
      .def_prop_ro(
          "compiler", [](const Artifact& self) { return self.metadata.compiler; }, "Name and version of the compiler.")
      .def_prop_ro(
          "cost_ms", [](const Artifact& self) { return self.metadata.cost_ms; }, "Time of the compile in milliseconds.")
      .def_prop_ro(
          "log", [](const Artifact& self) { return self.metadata.log; }, "Output of the compiler.")
      .def("__len__", [](const Artifact& self) { return self.bytes.size(); })
      .def("__repr__", [](const Artifact& self) {
        return "<kiln.Artifact of '" + self.metadata.unit + "' for " + self.target.name() + ", " +
               std::to_string(self.bytes.size()) + " bytes>";
      });
}

std::string line_of(const UnitStatus& unit) {
  char time[32];
  std::snprintf(time, sizeof time, "%.1f ms", unit.ms);
  std::string line = unit.unit + " for " + unit.target + ": " + to_string(unit.state);
  if (unit.state == UnitStatus::State::Ready) line += std::string(", ") + to_string(unit.origin) + ", " + time;
  if (!unit.error.empty()) line += ": " + unit.error;
  return line;
}

std::string whole_text(const SessionStatus& status) {
  std::string text = counts_text(status);
  for (const UnitStatus& unit : status.units) text += "\n  " + line_of(unit);
  return text;
}

void bind_status(nb::module_& module) {
  nb::class_<UnitStatus>(module, "UnitStatus", "The status of one unit for one target.")
      .def_ro("unit", &UnitStatus::unit, "Name of the unit.")
      .def_ro("kind", &UnitStatus::kind, "Kind of the unit: 'cuda', 'opencl', 'command', 'link' or 'cccl'.")
      .def_ro("target", &UnitStatus::target, "Name of the target.")
      .def_prop_ro(
          "state", [](const UnitStatus& self) { return to_string(self.state); },
          "'queued', 'running', 'ready', 'failed' or 'cancelled'.")
      .def_prop_ro(
          "origin",
          [](const UnitStatus& self) -> std::optional<std::string> {
            if (self.state != UnitStatus::State::Ready) return std::nullopt;
            return to_string(self.origin);
          },
          "Tier that had it, or 'compiled'; None if it is not ready.")
      .def_ro("ms", &UnitStatus::ms, "Time of the work in milliseconds.")
      .def_ro("error", &UnitStatus::error, "Why it failed; empty otherwise.")
      .def("__repr__", [](const UnitStatus& self) { return "<kiln.UnitStatus " + line_of(self) + ">"; });
  nb::class_<SessionStatus>(module, "Status", "A snapshot of the units of a session, and their counts.")
      .def_ro("submitted", &SessionStatus::submitted, "Number of units in the list.")
      .def_ro("compiled", &SessionStatus::compiled, "Number of units that were compiled.")
      .def_ro("cached", &SessionStatus::cached, "Number of units that a tier had.")
      .def_ro("pending", &SessionStatus::pending, "Number of units that are queued or running.")
      .def_ro("failed", &SessionStatus::failed, "Number of units that failed.")
      .def_ro("cancelled", &SessionStatus::cancelled, "Number of units whose request was canceled.")
      .def_ro("wall_ms", &SessionStatus::wall_ms,
              "Milliseconds from the first request to the end of the last work, or until now.")
      .def_ro("units", &SessionStatus::units, "Status of each unit.")
      .def_ro("released", &SessionStatus::released, "Number of units that were released.")
      .def("__str__", &whole_text)
      .def("__repr__", [](const SessionStatus& self) { return "<kiln.Status " + whole_text(self) + ">"; });
}

void bind_small_values(nb::module_& module) {
  nb::class_<DeviceInfo>(module, "DeviceInfo", "A device of this machine.")
      .def_ro("name", &DeviceInfo::name, "Name of the device.")
      .def_ro("target", &DeviceInfo::target, "Target to compile for.")
      .def_ro("units", &DeviceInfo::units, "Number of multiprocessors or compute units.")
      .def_ro("memory", &DeviceInfo::memory, "Memory in bytes.")
      .def_ro("fp64_ratio", &DeviceInfo::fp64_ratio,
              "Ratio of single-precision to double-precision throughput; 0 if unknown.")
      .def_ro("is_cpu", &DeviceInfo::is_cpu, "True if the device is a CPU, as with PoCL.")
      .def("__repr__",
           [](const DeviceInfo& self) { return "<kiln.DeviceInfo '" + self.name + "' " + self.target.name() + ">"; });
  nb::class_<NotReady>(module, "NotReady", "A unit that is not ready, and the reason.")
      .def_ro("unit", &NotReady::unit, "Name of the unit.")
      .def_ro("target", &NotReady::target, "Name of the target.")
      .def_ro("reason", &NotReady::reason, "Why it is not ready.")
      .def("__repr__", [](const NotReady& self) { return "<kiln.NotReady " + self.unit + ": " + self.reason + ">"; });
  nb::class_<UndeclaredUse>(module, "UndeclaredUse", "A use of a unit that was not requested before.")
      .def_ro("unit", &UndeclaredUse::unit, "Name of the unit.")
      .def_ro("entry", &UndeclaredUse::entry, "Entry that was used; empty for the whole unit.")
      .def_ro("caller", &UndeclaredUse::caller, "Place of the call, as file:line.")
      .def("__repr__", [](const UndeclaredUse& self) {
        const std::string entry = self.entry.empty() ? "" : " (" + self.entry + ")";
        return "<kiln.UndeclaredUse of '" + self.unit + "'" + entry + " at " + self.caller + ">";
      });
  nb::class_<Occupancy>(module, "Occupancy", "A launch size that keeps the device fully occupied.")
      .def_ro("block_size", &Occupancy::block_size, "Threads per block.")
      .def_ro("min_grid_size", &Occupancy::min_grid_size, "Minimum number of blocks that uses the whole device.")
      .def("__repr__", [](const Occupancy& self) {
        return "<kiln.Occupancy block_size=" + std::to_string(self.block_size) +
               " min_grid_size=" + std::to_string(self.min_grid_size) + ">";
      });
}

void bind_event(nb::module_& module) {
  nb::class_<Event>(module, "Event", "A decision of kiln or something that happened to it.")
      .def_prop_ro("kind", &event_name, "Name of the event, for example 'hit'.")
      .def_ro("category", &Event::category, "Library that defines the event; empty for kiln's own.")
      .def_ro("unit", &Event::unit, "Name of the unit, if the event concerns one.")
      .def_ro("target", &Event::target, "Name of the target, if the event concerns one.")
      .def_ro("key", &Event::key, "Hexadecimal key, if known.")
      .def_ro("origin", &Event::origin, "Tier: 'memory', 'bundle', 'disk', 'remote' or 'compiled'.")
      .def_ro("message", &Event::message, "Reason for a reader.")
      .def_ro("ms", &Event::ms, "Duration in milliseconds, if applicable.")
      .def_ro("bytes", &Event::bytes, "Size of a copy or an allocation.")
      .def_ro("stream", &Event::stream, "Native stream or queue; 0 means none or the default stream.")
      .def_ro("task_id", &Event::task_id, "Number of the compile task in this process; 0 if unknown.")
      .def_ro("requested", &Event::requested, "For a decision: what was requested.")
      .def_ro("selected", &Event::selected, "For a decision: the result; for a rejection or a wait: its outcome.")
      .def_ro("warm", &Event::warm, "For a decision or a dispatch: whether its code was ready; otherwise None.")
      .def_prop_ro(
          "operation", [](const Event& self) { return self.context.operation; },
          "The program's operation that the thread was in.")
      .def_prop_ro(
          "stage", [](const Event& self) { return self.context.stage; }, "Stage of that operation.")
      .def_prop_ro(
          "dispatch", [](const Event& self) { return self.context.dispatch; }, "Number of the run of that operation.")
      .def_prop_ro(
          "workflow", [](const Event& self) { return self.context.workflow; }, "Number of the workflow; 0 means none.")
      .def_prop_ro(
          "rows", [](const Event& self) { return self.context.rows; }, "Number of rows of the operation.")
      .def_prop_ro(
          "residency", [](const Event& self) { return to_string(self.context.residency); },
          "Where the rows are: 'unknown', 'host' or 'device'.")
      .def_prop_ro(
          "purpose", [](const Event& self) { return to_string(self.context.purpose); },
          "Declared purpose of a copy or a wait.")
      .def_ro("grid_blocks", &Event::grid_blocks, "For a launch: number of blocks.")
      .def_ro("block_threads", &Event::block_threads, "For a launch: threads per block.")
      .def_ro("suggested_block_threads", &Event::suggested_block_threads,
              "For a launch: block size that the driver suggests; 0 if unknown.")
      .def_ro("shared_bytes", &Event::shared_bytes, "For a launch: shared memory per block in bytes.")
      .def_ro("pinned", &Event::pinned, "For a copy: whether the host memory is page-locked; None if unknown.")
      .def_ro("cpu_device", &Event::cpu_device, "True if the device is a CPU.")
      .def_prop_ro(
          "details",
          [](const Event& self) {
            nb::dict details;
            for (const auto& [name, value] : self.details) details[name.c_str()] = value;
            return details;
          },
          "Further fields of an event of another library.")
      .def("__repr__", [](const Event& self) {
        return std::string("<kiln.Event ") + event_name(self) + " " + self.unit +
               (self.message.empty() ? "" : ": " + self.message) + ">";
      });
}

}  // namespace

std::optional<Target> target_of(nb::handle target) {
  if (target.is_none()) return std::nullopt;
  if (nb::isinstance<Target>(target)) return nb::cast<Target>(target);
  if (!nb::isinstance<nb::str>(target))
    throw nb::type_error("a target must be a kiln.Target, or a name such as 'sm_90'");
  return unwrap(Target::parse(nb::cast<std::string>(target)));
}

Target required_target(nb::handle target) {
  const std::optional<Target> given = target_of(target);
  if (!given) throw nb::type_error("a target is needed: a kiln.Target, or a name such as 'sm_90'");
  return *given;
}

std::string counts_text(const SessionStatus& status) {
  return std::to_string(status.submitted) + " units: " + std::to_string(status.compiled) + " compiled, " +
         std::to_string(status.cached) + " cached, " + std::to_string(status.pending) + " pending, " +
         std::to_string(status.failed) + " failed, " + std::to_string(status.cancelled) + " cancelled";
}

nb::bytes bytes_of(const Bytes& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

void bind_values(nb::module_& module) {
  bind_target(module);
  bind_cccl(module);
  bind_artifact(module);
  bind_status(module);
  bind_small_values(module);
  bind_event(module);
}

}  // namespace kiln::python
