#include <string>
#include <utility>

#include "bindings.hpp"
#include "errors.hpp"
#include "gate.hpp"
#include "session_object.hpp"

namespace kiln::python {
namespace {

/// The units of a pipeline's stages.
struct PlanObject {
  std::string name;
  Units units;
};

struct HandleObject {
  SharedSession session;
  Unit unit;
  std::string entry;
  Handle handle;
};

std::vector<Cold> ensure_warm(const PlanObject& plan, nb::handle session, std::optional<double> timeout) {
  const SharedSession where = session.is_none() ? shared_session() : nb::cast<const SessionObject&>(session).session;
  const PythonCaller caller;
  const auto limit = limit_of(timeout);
  return waiting([&] {
    core_of(where).declare(plan.units);
    return core_of(where).wait_for(plan.units, limit, caller);
  });
}

KernelObject get(const HandleObject& self, std::optional<double> timeout, nb::handle stream) {
  if (!stream.is_none() || !self.handle.ready()) {
    return get_kernel(self.session, self.unit, self.entry, timeout, stream);
  }
  return {self.session, self.unit, self.handle, taken(self.handle.get())};
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<PlanObject>(module, "Plan", "The units of a pipeline's stages, to be warm before it runs.")
      .def(
          "__init__",
          [](PlanObject* self, std::string name) {
            new (self) PlanObject{std::move(name), {}};
          },
          nb::arg("name"))
      .def_ro("name", &PlanObject::name)
      .def(
          "stage",
          [](PlanObject& self, const nb::args& units) -> PlanObject& {
            for (nb::handle unit : units) {
              for (Unit& one : units_of(unit)) self.units.push_back(std::move(one));
            }
            return self;
          },
          nb::arg("units"), nb::rv_policy::reference, "Adds a stage: the units that it uses.")
      .def("ensure_warm", &ensure_warm, nb::arg("session") = nb::none(), nb::arg("timeout") = nb::none(),
           "Requests all of them and waits until each is ready or has failed; returns what is still cold.");
}

void bind_handle(nb::module_& module, nb::class_<SessionObject>& session) {
  nb::class_<HandleObject>(module, "Handle", "The way to one kernel of one unit, made once.")
      .def_prop_ro("ready", [](const HandleObject& self) { return self.handle.ready(); })
      .def("get", &get, nb::arg("timeout") = kUsualTimeout, nb::kw_only(), nb::arg("stream") = nb::none());
  session.def(
      "handle",
      [](const SessionObject& self, const Unit& unit, std::string entry) {
        Handle made = without_interpreter([&] { return self.session->handle(unit, entry); });
        return HandleObject{self.session, unit, std::move(entry), std::move(made)};
      },
      nb::arg("unit"), nb::arg("entry") = "");
}

}  // namespace kiln::python
