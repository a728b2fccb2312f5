#include <string>
#include <utility>

#include "bindings.hpp"
#include "bundle/program_bundles.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "session/config/manifest.hpp"
#include "session_object.hpp"

namespace kiln::python {
namespace {

// Returns the unit as `kiln bundle create` builds it.
Result<Unit> unit_of(const Manifest& manifest, const Manifest::UnitEntry& member) {
  if (member.spec) return member.spec->for_targets(manifest.architectures).unit();
  return read_unit(member.source);
}

nb::dict units_of_manifest(nb::handle path) {
  const std::string file = path_of(path);
  const auto read = [&]() -> Result<std::vector<std::pair<std::string, Unit>>> {
    const Result<Manifest> manifest = read_manifest(file);
    if (!manifest) return manifest.error();
    std::vector<std::pair<std::string, Unit>> units;
    for (const Manifest::UnitEntry& member : manifest->members) {
      Result<Unit> unit = unit_of(*manifest, member);
      if (!unit) return std::move(unit).error();
      units.emplace_back(member.name, *std::move(unit));
    }
    return units;
  };
  nb::dict out;
  for (auto& [name, unit] : unwrap(call_without_gil(read))) {
    register_unit(unit);
    out[name.c_str()] = std::move(unit);
  }
  return out;
}

}  // namespace

void bind_bundle(nb::module_& module) {
  module.def(
      "use_bundle",
      [](nb::handle path) {
        const std::string file = path_of(path);
        unwrap(call_without_gil([&] { return use_bundle(file); }));
      },
      nb::arg("path"),
      "Names a bundle that is installed with this program. Every session of the process asks it before any cache.");
  module.def("read_manifest", &units_of_manifest, nb::arg("path"),
             "Returns the units of a kiln.toml by name, equal to those in a bundle of it.");
}

}  // namespace kiln::python
