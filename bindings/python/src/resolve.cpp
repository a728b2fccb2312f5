// SPDX-License-Identifier: Apache-2.0
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

void bind_resolved(nb::module_& module) {
  nb::class_<ResolvedArtifact>(module, "ResolvedArtifact", "An artifact, its keys, and how the session got it.")
      .def_ro("artifact", &ResolvedArtifact::artifact, "The artifact.")
      .def_prop_ro(
          "request_key", [](const ResolvedArtifact& self) { return self.request.hex(); },
          "Key of the request, in hexadecimal.")
      .def_prop_ro(
          "key", [](const ResolvedArtifact& self) { return self.key.hex(); }, "Key of the artifact, in hexadecimal.")
      .def_prop_ro(
          "origin", [](const ResolvedArtifact& self) { return to_string(self.origin); },
          "Tier that had it, or 'compiled'.")
      .def_ro("ms", &ResolvedArtifact::ms, "Time until the session had it, in milliseconds.")
      .def_ro("uncacheable_reason", &ResolvedArtifact::uncacheable_reason, "Why it is not stored; empty if it is.")
      .def("__repr__", [](const ResolvedArtifact& self) {
        return "<kiln.ResolvedArtifact of '" + self.artifact.metadata.unit + "', " + to_string(self.origin) + ">";
      });
}

void bind_explanation(nb::module_& module) {
  nb::class_<InputDifference>(module, "InputDifference", "One input that differs from that of an earlier build.")
      .def_ro("input", &InputDifference::input, "Kind of the input, for example 'source', 'header' or 'option'.")
      .def_ro("name", &InputDifference::name, "Name of the input.")
      .def_ro("before", &InputDifference::before, "Value in the earlier build.")
      .def_ro("after", &InputDifference::after, "Value now.")
      .def("__repr__",
           [](const InputDifference& self) { return "<kiln.InputDifference " + self.input + " " + self.name + ">"; });
  nb::class_<Explanation::EarlierBuild>(module, "EarlierBuild", "An earlier build of a unit.")
      .def_prop_ro(
          "key", [](const Explanation::EarlierBuild& self) { return self.key.hex(); },
          "Key of its artifact, in hexadecimal.")
      .def_ro("target", &Explanation::EarlierBuild::target, "Its target.")
      .def_ro("compiler", &Explanation::EarlierBuild::compiler, "Its compiler.")
      .def_prop_ro(
          "built_at",
          [](const Explanation::EarlierBuild& self) {
            return std::chrono::duration<double>(self.built_at.time_since_epoch()).count();
          },
          "Time of the build, in seconds since 1970.")
      .def_ro("cost_ms", &Explanation::EarlierBuild::cost_ms, "Time of the compile in milliseconds.")
      .def("__repr__", [](const Explanation::EarlierBuild& self) {
        return "<kiln.EarlierBuild " + self.key.hex().substr(0, 12) + " for " + self.target.name() + " by " +
               self.compiler + ">";
      });
  nb::class_<Explanation>(module, "Explanation", "The reason why a unit is a cache hit or a miss.")
      .def_ro("hit", &Explanation::hit, "True if a tier has the unit.")
      .def_ro("artifact", &Explanation::artifact, "What the tier has; None on a miss.")
      .def_prop_ro(
          "request_key", [](const Explanation& self) { return self.request.hex(); },
          "Key of the request, in hexadecimal.")
      .def_ro("nearest", &Explanation::nearest, "The earlier build that differs least; None if there is none.")
      .def_ro("differences", &Explanation::differences, "Inputs that differ from it.")
      .def_ro("summary", &Explanation::summary, "The reason in a sentence.")
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
            const SharedSession used = self.get();
            const PythonCaller caller;
            return unwrap(call_interruptible(limit_of(timeout),
                                             [&](Wait wait) { return used->resolve(unit, place, wait, caller); }),
                          &unit);
          },
          nb::arg("unit"), nb::arg("target"), nb::arg("timeout") = nb::none(),
          "Same as artifact(); also returns the keys of the artifact and how the session got it.")
      .def(
          "explain",
          [](const SessionObject& self, const Unit& unit, nb::handle target) {
            const Target place = required_target(target);
            return unwrap(with_session(self, [&](Session& used) { return used.explain(unit, place); }), &unit);
          },
          nb::arg("unit"), nb::arg("target"),
          "Looks a unit up in all tiers without compiling it. On a miss, compares it with earlier builds.")
      .def(
          "recorded_cost_ms",
          [](const SessionObject& self, const Unit& unit, nb::handle target) {
            const Target place = required_target(target);
            return with_session(self, [&](Session& used) { return used.recorded_cost_ms(unit, place); });
          },
          nb::arg("unit"), nb::arg("target"),
          "Returns the compile time of the last recorded build in milliseconds, or None.")
      .def(
          "wait_for_uploads",
          [](const SessionObject& self, std::optional<double> timeout) {
            const SharedSession used = self.get();
            return call_interruptible(limit_of(timeout), [&](Wait wait) { return used->wait_for_uploads(wait); });
          },
          nb::arg("timeout") = nb::none(),
          "Waits until everything compiled so far is uploaded. Returns False if something is left after `timeout`.");
}

}  // namespace kiln::python
