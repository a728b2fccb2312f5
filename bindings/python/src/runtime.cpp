// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/runtime.hpp>

#include <deque>

#include "errors.hpp"
#include "runtime_object.hpp"
#include "session_object.hpp"

namespace kiln::python {
namespace {

using runtime::Decision;
using runtime::Mode;
using runtime::PrecisionPolicy;
using runtime::Runtime;
using runtime::Variant;

/// The values that an operation refers to.
struct OperationStorage {
  std::string name_text;
  std::deque<std::string> labels;
  std::deque<Units> units;
  std::deque<Requirements> requirements;
  std::vector<Variant> variants;
};

struct OwningOperation : OperationStorage, runtime::Operation {
  OwningOperation(OperationStorage storage, runtime::PrecisionClass precision)
      : OperationStorage(std::move(storage)),
        Operation(name_text.c_str(), precision, variants.data(), variants.size()) {}
};

// Adds the units that a variant compiles, and returns what refers to them; null if there are none.
const Requirements* add_requirements(OperationStorage& storage, nb::handle units, const std::string& backend) {
  Units list = units_of(units);
  if (list.empty()) return nullptr;
  const std::string& label = storage.labels.emplace_back(storage.name_text + " (" + backend + ")");
  return &storage.requirements.emplace_back(label.c_str(), &storage.units.emplace_back(std::move(list)));
}

std::uint64_t crossover_of(nb::handle given) {
  constexpr const char* kExpected = "crossover must be None or a number of rows from 0 to 2**64 - 1";
  if (given.is_none()) return runtime::kNoCrossover;
  std::uint64_t rows = 0;
  if (nb::try_cast(given, rows)) return rows;
  if (PyLong_Check(given.ptr())) throw nb::value_error(kExpected);
  raise_wrong_type(kExpected, given);
}

Variant variant_of(OperationStorage& storage, const nb::tuple& given) {
  using runtime::Determinism, runtime::Precision, runtime::Robustness;
  constexpr const char* kExpected[] = {"backend must be a string", "robustness must be a string",
                                       "determinism must be a string", "precision must be a string"};
  const auto text = [&](std::size_t at) { return cast_argument<std::string>(given[at], kExpected[at]); };
  return Variant(backend_of(text(0)),
                 parse_enum<Robustness>(text(1), "robustness", {Robustness::Exact, Robustness::Bounded}),
                 parse_enum<Precision>(text(3), "precision", {Precision::Fp64, Precision::Fp32, Precision::Mixed}),
                 parse_enum<Determinism>(text(2), "determinism", {Determinism::Deterministic, Determinism::Unordered}),
                 crossover_of(given[4]), add_requirements(storage, given[5], text(0)));
}

OperationObject make_operation(std::string name, const std::string& precision, const nb::list& variants) {
  using runtime::PrecisionClass;
  if (name.empty()) throw nb::value_error("the name of an operation must not be empty");
  if (variants.size() == 0) throw nb::value_error(("the operation " + name + " has no variants").c_str());
  const auto wanted = parse_enum<PrecisionClass>(
      precision, "precision",
      {PrecisionClass::Predicate, PrecisionClass::Metric, PrecisionClass::Coarse, PrecisionClass::Constructive});
  OperationStorage storage;
  storage.name_text = std::move(name);
  for (nb::handle one : variants) storage.variants.push_back(variant_of(storage, nb::cast<nb::tuple>(one)));
  // std::deque keeps the addresses of its elements when it is moved, but short strings move. The labels are in a deque.
  return {new OwningOperation(std::move(storage), wanted)};
}

std::optional<Mode> mode_of(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return parse_enum<Mode>(*text, "mode", {Mode::Auto, Mode::Cpu, Mode::Gpu});
}

std::optional<PrecisionPolicy> policy_of(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return parse_enum<PrecisionPolicy>(*text, "precision", {PrecisionPolicy::Auto, PrecisionPolicy::Fp64});
}

RuntimeObject make_runtime(nb::handle session, const std::optional<std::vector<std::string>>& devices,
                           nb::handle calibration, runtime::RuntimeOptions options) {
  if (devices) {
    options.devices.clear();
    for (const std::string& device : *devices) {
      options.devices.push_back(
          parse_enum<runtime::Backend>(device, "a device", {runtime::Backend::OpenCl, runtime::Backend::Cuda}));
    }
  }
  if (!calibration.is_none()) options.calibration = path_of(calibration);
  const SharedSession used = session.is_none()
                                 ? shared_session()
                                 : cast_argument<const SessionObject&>(session, "session must be a kiln.Session").get();
  return RuntimeObject(Runtime(*used, std::move(options)));
}

nb::dict counts_of(const Runtime::Counts& counts) {
  nb::dict made;
  made["decisions"] = counts.decisions;
  made["dispatches"] = counts.dispatches;
  made["on_device"] = counts.on_device;
  made["on_gpu"] = counts.on_gpu;
  made["fallbacks"] = counts.fallbacks;
  return made;
}

nb::object rows_or_none(std::uint64_t rows) {
  return rows == runtime::kNoCrossover ? nb::none() : nb::object(nb::int_(rows));
}

void bind_decision(nb::module_& module) {
  nb::class_<Decision>(module, "Decision", "The backend on which an operation runs, and the reason.")
      .def_ro("id", &Decision::id, "Number of the decision in this process.")
      .def_prop_ro(
          "operation", [](const Decision& self) { return self.operation->name(); }, "Name of the operation.")
      .def_prop_ro(
          "requested", [](const Decision& self) { return to_string(self.requested); },
          "Requested mode: 'auto', 'cpu' or 'gpu'.")
      .def_prop_ro(
          "source", [](const Decision& self) { return to_string(self.source); }, "Where the mode comes from.")
      .def_prop_ro(
          "selected", [](const Decision& self) { return to_string(self.selected); },
          "Selected backend: 'cpu', 'opencl' or 'cuda'.")
      .def_ro("device", &Decision::device, "Name of the device; empty for the CPU.")
      .def_ro("cpu_device", &Decision::cpu_device, "True if the device is a CPU.")
      .def_prop_ro(
          "precision", [](const Decision& self) { return to_string(self.precision); },
          "Precision in which the variant computes.")
      .def_prop_ro(
          "planned_precision", [](const Decision& self) { return to_string(self.planned_precision); },
          "Precision that the plan asks for.")
      .def_ro("fp64_ratio", &Decision::fp64_ratio,
              "Ratio of single-precision to double-precision throughput of the device; 0 if unknown.")
      .def_prop_ro(
          "robustness", [](const Decision& self) { return to_string(self.variant->robustness); },
          "'exact' or 'bounded'.")
      .def_prop_ro(
          "determinism", [](const Decision& self) { return to_string(self.variant->determinism); },
          "'deterministic' or 'unordered'.")
      .def_prop_ro(
          "reason", [](const Decision& self) { return to_string(self.reason); }, "Code of the reason.")
      .def_ro("explanation", &Decision::explanation, "The reason in a sentence, with the values.")
      .def_ro("warm", &Decision::warm, "True if all units of the variant were ready.")
      .def_ro("fallback", &Decision::fallback, "True if mode auto preferred a device and could not use it.")
      .def_ro("measured", &Decision::measured, "True if the crossover comes from a calibration of this machine.")
      .def_prop_ro(
          "crossover", [](const Decision& self) { return rows_or_none(self.crossover); },
          "Number of rows from which on the device is selected; None means never by size.")
      .def_ro("rows", &Decision::rows, "Number of rows.")
      .def_prop_ro(
          "residency", [](const Decision& self) { return to_string(self.residency); }, "Where the rows are.")
      .def("__repr__", [](const Decision& self) {
        return std::string("<kiln.runtime.Decision ") + self.operation->name() + " on " + to_string(self.selected) +
               ": " + self.explanation + ">";
      });
  nb::class_<runtime::StageTime>(module, "StageTime", "The duration of a stage.")
      .def_ro("operation", &runtime::StageTime::operation, "Name of the operation.")
      .def_ro("stage", &runtime::StageTime::stage, "Name of the stage.")
      .def_ro("location", &runtime::StageTime::location, "'host', 'opencl' or 'cuda'.")
      .def_ro("ms", &runtime::StageTime::ms, "Duration in milliseconds.")
      .def("__repr__", [](const runtime::StageTime& self) {
        return "<kiln.runtime.StageTime " + self.operation + "/" + self.stage + " on " + self.location + ">";
      });
}

/// A setting that is on or off, and its functions.
struct SwitchFunctions {
  const char* name;
  const char* meaning;  ///< follows "whether" in the docstrings
  bool (Runtime::*value)() const;
  runtime::SettingSource (Runtime::*source)() const;
  void (Runtime::*set)(std::optional<bool>);
};
constexpr SwitchFunctions kSwitches[] = {
    {"rewrites", "fused rewrites of operations are used", &Runtime::rewrites, &Runtime::rewrites_source,
     &Runtime::set_rewrites},
    {"deterministic", "only variants with deterministic results are used", &Runtime::deterministic,
     &Runtime::deterministic_source, &Runtime::set_deterministic},
    {"allow_cpu_device", "an OpenCL device that is a CPU may be selected", &Runtime::allow_cpu_device,
     &Runtime::allow_cpu_device_source, &Runtime::set_allow_cpu_device},
    {"time_stages", "a stage waits for its stream, so that its duration includes the device's work",
     &Runtime::time_stages, &Runtime::time_stages_source, &Runtime::set_time_stages},
};

// Calls a member function without holding the GIL: the first one reads the environment and can emit a warning.
template <class... Arguments, class Member>
auto call_member(const RuntimeObject& self, Member member, const Arguments&... arguments) {
  auto& runtime = const_cast<Runtime&>(self.get());
  return call_without_gil([&] { return (runtime.*member)(arguments...); });
}

nb::dict runtime_status(const RuntimeObject& self) {
  nb::dict made = counts_of(self.get().counts());
  const auto add = [&](const std::string& name, const nb::object& value, runtime::SettingSource source) {
    made[name.c_str()] = value;
    made[(name + "_source").c_str()] = to_string(source);
  };
  add("mode", nb::str(to_string(call_member(self, &Runtime::mode))), call_member(self, &Runtime::mode_source));
  add("precision", nb::str(to_string(call_member(self, &Runtime::precision))),
      call_member(self, &Runtime::precision_source));
  for (const SwitchFunctions& one : kSwitches) {
    add(one.name, nb::bool_(call_member(self, one.value)), call_member(self, one.source));
  }
  return made;
}

void bind_settings(nb::class_<RuntimeObject>& runtime) {
  for (const SwitchFunctions& one : kSwitches) {
    const std::string name = one.name;
    const std::string meaning = one.meaning;
    runtime
        .def(
            name.c_str(), [one](const RuntimeObject& self) { return call_member(self, one.value); },
            ("Returns whether " + meaning + ".").c_str())
        .def((name + "_source").c_str(),
             [one](const RuntimeObject& self) { return to_string(call_member(self, one.source)); },
             ("Returns where the setting '" + name + "' comes from.").c_str())
        .def(("set_" + name).c_str(),
             [one](RuntimeObject& self, std::optional<bool> value) { call_member(self, one.set, value); },
             nb::arg(one.name).none(), ("Sets whether " + meaning + "; None removes what was set here.").c_str());
  }
  runtime
      .def(
          "mode", [](const RuntimeObject& self) { return to_string(call_member(self, &Runtime::mode)); },
          "Returns the mode: 'auto', 'cpu' or 'gpu'.")
      .def(
          "mode_source", [](const RuntimeObject& self) { return to_string(call_member(self, &Runtime::mode_source)); },
          "Returns where the mode comes from.")
      .def(
          "set_mode",
          [](RuntimeObject& self, const std::optional<std::string>& mode) {
            call_member(self, &Runtime::set_mode, mode_of(mode));
          },
          nb::arg("mode").none(), "Sets the mode, or with None removes what was set here. Queries the devices again.")
      .def(
          "precision", [](const RuntimeObject& self) { return to_string(call_member(self, &Runtime::precision)); },
          "Returns the precision policy: 'auto' or 'fp64'.")
      .def(
          "precision_source",
          [](const RuntimeObject& self) { return to_string(call_member(self, &Runtime::precision_source)); },
          "Returns where the precision policy comes from.")
      .def(
          "set_precision",
          [](RuntimeObject& self, const std::optional<std::string>& precision) {
            call_member(self, &Runtime::set_precision, policy_of(precision));
          },
          nb::arg("precision").none(), "Sets the precision policy, or with None removes what was set here.");
}

}  // namespace

runtime::Backend backend_of(const std::string& text) {
  using runtime::Backend;
  return parse_enum<Backend>(text, "backend", {Backend::Cpu, Backend::OpenCl, Backend::Cuda});
}

runtime::DispatchRequest request_of(std::uint64_t rows, const std::string& residency,
                                    const std::optional<std::string>& device) {
  runtime::DispatchRequest request;
  request.rows = rows;
  request.residency = residency_of(residency);
  if (device) request.device = backend_of(*device);
  if (request.residency == Residency::Device && !on_device(request.device)) {
    throw nb::value_error("rows on a device need device='cuda' or device='opencl'");
  }
  return request;
}

void bind_runtime(nb::module_& module) {
  bind_decision(module);
  module.def(
      "_check_variant",
      [](const nb::tuple& declared) {
        OperationStorage unused;
        (void)variant_of(unused, declared);
      },
      nb::arg("declared"));
  nb::class_<OperationObject>(module, "DispatchOperation", "An operation with several implementations.")
      .def(
          "__init__",
          [](OperationObject* self, std::string name, const std::string& precision, const nb::list& variants) {
            new (self) OperationObject(make_operation(std::move(name), precision, variants));
          },
          nb::arg("name"), nb::arg("precision"), nb::arg("variants"))
      .def_prop_ro(
          "name", [](const OperationObject& self) { return self.operation->name(); }, "Name of the operation.")
      .def("__repr__", [](const OperationObject& self) {
        return std::string("<kiln.runtime.Operation ") + self.operation->name() + ">";
      });
  nb::class_<RuntimeObject> runtime(module, "Runtime", "Selects the backend of operations.");
  runtime.def(
      "__init__",
      [](RuntimeObject* self, nb::handle session, const std::optional<std::string>& mode, std::optional<bool> rewrites,
         std::optional<bool> deterministic, std::optional<bool> allow_cpu_device,
         const std::optional<std::string>& precision, const std::optional<std::vector<std::string>>& devices,
         nb::handle calibration, std::optional<bool> time_stages) {
        runtime::RuntimeOptions options;
        options.mode = mode_of(mode);
        options.rewrites = rewrites;
        options.deterministic = deterministic;
        options.allow_cpu_device = allow_cpu_device;
        options.precision = policy_of(precision);
        options.time_stages = time_stages;
        new (self) RuntimeObject(make_runtime(session, devices, calibration, std::move(options)));
      },
      nb::arg("session") = nb::none(), nb::kw_only(), nb::arg("mode") = nb::none(), nb::arg("rewrites") = nb::none(),
      nb::arg("deterministic") = nb::none(), nb::arg("allow_cpu_device") = nb::none(),
      nb::arg("precision") = nb::none(), nb::arg("devices") = nb::none(), nb::arg("calibration") = nb::none(),
      nb::arg("time_stages") = nb::none());
  bind_settings(runtime);
  runtime
      .def(
          "decide",
          [](RuntimeObject& self, const OperationObject& operation, std::uint64_t rows, const std::string& residency,
             const std::optional<std::string>& device) {
            const runtime::DispatchRequest request = request_of(rows, residency, device);
            return unwrap(call_without_gil([&] { return self.get().decide(*operation.operation, request); }));
          },
          nb::arg("operation"), nb::kw_only(), nb::arg("rows"), nb::arg("residency") = "host",
          nb::arg("device") = nb::none(),
          "Selects the backend of an operation and requests the units of the selected variant.")
      .def(
          "should_rewrite",
          [](RuntimeObject& self, const std::string& name, const OperationObject& replaced, const OperationObject* by,
             std::uint64_t rows) {
            const runtime::Rewrite rewrite{name.c_str(), replaced.operation, by != nullptr ? by->operation : nullptr};
            return call_without_gil([&] { return self.get().should_rewrite(rewrite, rows); });
          },
          nb::arg("name"), nb::arg("replaced"), nb::arg("by").none(), nb::kw_only(), nb::arg("rows"),
          "Returns whether rewrites are on, and emits the event of the rewrite. `by` is None if the result is an "
          "input.")
      .def(
          "counts", [](const RuntimeObject& self) { return counts_of(self.get().counts()); },
          "Returns the numbers of decisions and runs so far.")
      .def("status", &runtime_status, "Returns the counts, and each setting with its source.")
      .def(
          "last_stages",
          [](const RuntimeObject& self) { return call_without_gil([&] { return self.get().last_stages(); }); },
          "Returns the stages of the outermost scope that ended last.");
  runtime.def("__repr__", [](const RuntimeObject& self) {
    return std::string("<kiln.runtime.Runtime in mode ") + to_string(call_member(self, &Runtime::mode)) + ">";
  });
  bind_dispatch(module);
}

}  // namespace kiln::python
