// How the session got or would get an artifact: resolve, explain, and the waits for what follows a compile.
#include <chrono>
#include <optional>
#include <string>

#include <kiln/explanation.hpp>

#include "bindings.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "session_object.hpp"

namespace kiln::python {
namespace {

Target required_target(nb::handle target) {
  const std::optional<Target> given = target_of(target);
  if (!given) throw nb::type_error("a target is needed");
  return *given;
}

void bind_resolved(nb::module_& module) {
  nb::class_<ResolvedArtifact>(module, "ResolvedArtifact", "An artifact, its keys, and how the session got it.")
      .def_ro("artifact", &ResolvedArtifact::artifact)
      .def_prop_ro("request_key", [](const ResolvedArtifact& self) { return self.request.hex(); })
      .def_prop_ro("key", [](const ResolvedArtifact& self) { return self.key.hex(); })
      .def_prop_ro("origin", [](const ResolvedArtifact& self) { return to_string(self.origin); })
      .def_ro("ms", &ResolvedArtifact::ms)
      .def_ro("uncacheable_reason", &ResolvedArtifact::uncacheable_reason)
      .def("__repr__", [](const ResolvedArtifact& self) {
        return "<kiln.ResolvedArtifact of '" + self.artifact.metadata.unit + "', " + to_string(self.origin) + ">";
      });
}

void bind_explanation(nb::module_& module) {
  nb::class_<InputDifference>(module, "InputDifference", "One input that differs from that of an earlier build.")
      .def_ro("input", &InputDifference::input)
      .def_ro("name", &InputDifference::name)
      .def_ro("before", &InputDifference::before)
      .def_ro("after", &InputDifference::after)
      .def("__repr__",
           [](const InputDifference& self) { return "<kiln.InputDifference " + self.input + " " + self.name + ">"; });
  nb::class_<Explanation::EarlierBuild>(module, "EarlierBuild", "An earlier build of a unit.")
      .def_prop_ro("key", [](const Explanation::EarlierBuild& self) { return self.key.hex(); })
      .def_ro("target", &Explanation::EarlierBuild::target)
      .def_ro("compiler", &Explanation::EarlierBuild::compiler)
      .def_prop_ro("built_at",
                   [](const Explanation::EarlierBuild& self) {
                     return std::chrono::duration<double>(self.built_at.time_since_epoch()).count();
                   })
      .def_ro("cost_ms", &Explanation::EarlierBuild::cost_ms);
  nb::class_<Explanation>(module, "Explanation", "The reason why a unit is a cache hit or a miss.")
      .def_ro("hit", &Explanation::hit)
      .def_ro("artifact", &Explanation::artifact)
      .def_prop_ro("request_key", [](const Explanation& self) { return self.request.hex(); })
      .def_ro("nearest", &Explanation::nearest)
      .def_ro("differences", &Explanation::differences)
      .def_ro("summary", &Explanation::summary)
      .def("__str__", [](const Explanation& self) { return self.summary; })
      .def("__repr__", [](const Explanation& self) { return "<kiln.Explanation: " + self.summary + ">"; });
}

}  // namespace

void bind_resolve(nb::module_& module, nb::class_<SessionObject>& session) {
  bind_resolved(module);
  bind_explanation(module);
  session
      .def(
          "resolve",
          [](const SessionObject& self, const Unit& unit, nb::handle target, std::optional<double> timeout) {
            const Target place = required_target(target);
            const PythonCaller caller;
            return unwrap(
                call_interruptible(limit_of(timeout),
                                   [&](Wait wait) { return self.session->resolve(unit, place, wait, caller); }),
                &unit);
          },
          nb::arg("unit"), nb::arg("target"), nb::arg("timeout") = nb::none(),
          "Same as artifact(); also returns the keys of the artifact and how the session got it.")
      .def(
          "explain",
          [](const SessionObject& self, const Unit& unit, nb::handle target) {
            const Target place = required_target(target);
            return unwrap(call_without_gil([&] { return self.session->explain(unit, place); }), &unit);
          },
          nb::arg("unit"), nb::arg("target"),
          "Looks a unit up in all tiers without compiling it. On a miss, compares it with earlier builds.")
      .def(
          "recorded_cost_ms",
          [](const SessionObject& self, const Unit& unit, nb::handle target) {
            const Target place = required_target(target);
            return call_without_gil([&] { return self.session->recorded_cost_ms(unit, place); });
          },
          nb::arg("unit"), nb::arg("target"),
          "Returns the compile time of the last recorded build in milliseconds, or None.")
      .def(
          "wait_for_uploads",
          [](const SessionObject& self, std::optional<double> timeout) {
            return call_interruptible(limit_of(timeout),
                                      [&](Wait wait) { return self.session->wait_for_uploads(wait); });
          },
          nb::arg("timeout") = nb::none(),
          "Waits until everything compiled so far is uploaded. Returns False if something is left after `timeout`.");
}

}  // namespace kiln::python
