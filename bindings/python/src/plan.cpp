// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "bindings.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "session_object.hpp"

namespace kiln::python {
namespace {

/// The units of a pipeline's stages.
struct WarmupPlanObject {
  std::string name;
  Units units;
};

struct KernelHandleObject {
  SharedSession session;
  Unit unit;
  std::string entry;
  KernelHandle handle;
};

std::vector<NotReady> ensure_warm(const WarmupPlanObject& plan, nb::handle session, std::optional<double> timeout) {
  const SharedSession where =
      session.is_none() ? shared_session()
                        : cast_argument<const SessionObject&>(session, "session must be a kiln.Session").get();
  const PythonCaller caller;
  return call_interruptible(limit_of(timeout), [&](Wait wait) {
    CallDeadline deadline(wait);
    impl_of(where).kernels().declare(plan.units);
    return impl_of(where).kernels().wait_for(plan.units, deadline, caller);
  });
}

KernelObject get(const KernelHandleObject& self, std::optional<double> timeout, nb::handle stream) {
  std::optional<Kernel> ready = stream.is_none() ? self.handle.try_get() : std::nullopt;
  if (ready) return {self.session, self.unit, *std::move(ready)};
  return get_kernel(self.session, self.unit, self.entry, timeout, stream);
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<WarmupPlanObject>(module, "WarmupPlan", "The units of a pipeline's stages, to be compiled before it runs.")
      .def(
          "__init__",
          [](WarmupPlanObject* self, std::string name) {
            new (self) WarmupPlanObject{std::move(name), {}};
          },
          nb::arg("name"))
      .def_ro("name", &WarmupPlanObject::name, "Name of the plan.")
      .def(
          "stage",
          [](WarmupPlanObject& self, const nb::args& units) -> WarmupPlanObject& {
            for (nb::handle unit : units) {
              for (Unit& one : units_of(unit)) self.units.push_back(std::move(one));
            }
            return self;
          },
          nb::arg("units"), nb::rv_policy::reference, "Adds a stage: the units that it uses.")
      .def("ensure_warm", &ensure_warm, nb::arg("session") = nb::none(),
           nb::arg("timeout") = std::chrono::duration<double>(kPlanTimeout).count(),
           "Requests all units and waits until each is ready or has failed, at most `timeout` seconds; None means no "
           "limit. Returns those that are not ready: without a device, all of them.")
      .def("__repr__", [](const WarmupPlanObject& self) {
        return "<kiln.WarmupPlan '" + self.name + "' of " + std::to_string(self.units.size()) + " units>";
      });
}

void bind_handle(nb::module_& module, nb::class_<SessionObject>& session) {
  nb::class_<KernelHandleObject>(module, "KernelHandle", "A handle to one kernel of one unit, created once.")
      .def_prop_ro(
          "ready", [](const KernelHandleObject& self) { return self.handle.ready(); }, "True if `get` returns at once.")
      .def("get", &get, nb::arg("timeout") = nb::none(), nb::kw_only(), nb::arg("stream") = nb::none(),
           "Returns the kernel: at once if it is ready, otherwise after at most `timeout` seconds. None means no "
           "limit.")
      .def("__repr__", [](const KernelHandleObject& self) {
        const std::string entry = self.entry.empty() ? "" : " " + self.entry;
        return "<kiln.KernelHandle" + entry + " of '" + self.unit.label() + (self.handle.ready() ? "', ready>" : "'>");
      });
  session.def(
      "handle",
      [](const SessionObject& self, const Unit& unit, std::string entry) {
        SharedSession used = self.get();
        KernelHandle made = call_without_gil([&] { return used->handle(unit, entry); });
        return KernelHandleObject{std::move(used), unit, std::move(entry), std::move(made)};
      },
      nb::arg("unit"), nb::arg("entry") = "",
      "Returns a handle to one kernel of a unit. `entry` can be left out if the unit has one.");
}

}  // namespace kiln::python
