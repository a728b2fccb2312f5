// What kiln.compute needs of CCCL's artifacts and of the session, besides the public functions.
#include <string>
#include <utility>

#include "backends/cccl/cccl_library.hpp"
#include "base/error.hpp"
#include "bindings.hpp"
#include "core/cccl_envelope.hpp"
#include "core/recipe.hpp"
#include "errors.hpp"
#include "session_object.hpp"

namespace kiln::python {
namespace {

Error rejected(const std::string& reason) {
  return make_error(Code::LoadRejected, "cannot use this compiled CCCL algorithm: " + reason);
}

// The library detects few changes of a blob, and misreads a blob of another library, so all of this is checked first.
Result<std::string> blob_for(const Artifact& artifact, const Unit& unit, const std::string& library) {
  const auto envelope = decode_cccl_envelope(artifact.bytes.view());
  if (!envelope) return rejected("it is corrupt: " + envelope.error().message);
  if (envelope->spec != unit.source()) return rejected("it is of another spec: " + envelope->spec);
  if (envelope->capability != capability_of(artifact.target)) {
    return rejected("it was compiled for capability " + std::to_string(envelope->capability) + ", not for " +
                    artifact.target.architecture);
  }
  const auto candidates = cccl_candidates(library);
  const std::string present = candidates.empty() ? "none" : candidates.front().build_id;
  if (envelope->build_id != present) {
    return rejected("another library built it, of cuda-cccl " + envelope->release + " (build id " + envelope->build_id +
                    "), not " + library + " (" + present + "); remove the setting cccl (KILN_CCCL)");
  }
  return std::string(envelope->blob);
}

nb::bytes serialized_build(const Artifact& artifact, const Unit& unit, const std::string& library) {
  const std::string blob = unwrap(blob_for(artifact, unit, library));
  return nb::bytes(blob.data(), blob.size());
}

// Emits an event of what kiln.compute did; the kinds are those that it uses.
void emit(const SessionObject& self, const std::string& kind, const std::string& unit, const std::string& target,
          const std::string& message, double ms) {
  const GilRelease released;
  const EventEmitter& emitter = impl_of(self.session).emitter();
  if (!emitter) return;
  using Kind = Event::Kind;
  for (const Kind known : {Kind::CalledCompiled, Kind::CalledFallback, Kind::CompileFailed, Kind::NoDevice}) {
    if (kind != to_string(known)) continue;
    Event event;
    event.kind = known;
    event.unit = unit;
    event.target = target;
    event.message = message;
    event.ms = ms;
    emitter.emit(event);
  }
}

}  // namespace

void bind_compute(nb::module_& module, nb::class_<SessionObject>& session) {
  module.def("_serialized_build", &serialized_build, nb::arg("artifact"), nb::arg("unit"), nb::arg("library"));
  session.def("_emit", &emit, nb::arg("kind"), nb::arg("unit"), nb::arg("target"), nb::arg("message"), nb::arg("ms"));
  session.def(
      "_has_device",
      [](const SessionObject& self, const std::string& backend) {
        const GilRelease released;
        return impl_of(self.session).drivers().has_device(backend);
      },
      nb::arg("backend"));
}

}  // namespace kiln::python
