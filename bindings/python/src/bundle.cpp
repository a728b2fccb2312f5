// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "bindings.hpp"
#include "bundle/program_bundles.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "session/config/manifest.hpp"
#include "session_object.hpp"

namespace kiln::python {
namespace {

// Returns the units of a member as `kiln bundle create` builds them.
Result<std::vector<Unit>> units_of_member(const Manifest& manifest, const Manifest::UnitEntry& member) {
  if (member.spec) return std::vector<Unit>{member.spec->for_targets(manifest.architectures).unit()};
  return read_units(member.source);
}

nb::dict units_of_manifest(nb::handle path) {
  const std::string file = path_of(path);
  const auto read = [&]() -> Result<std::vector<std::pair<std::string, Unit>>> {
    const Result<Manifest> manifest = read_manifest(file);
    if (!manifest) return manifest.error();
    std::vector<std::pair<std::string, Unit>> units;
    std::set<std::string> names;
    for (const Manifest::UnitEntry& member : manifest->members) {
      Result<std::vector<Unit>> made = units_of_member(*manifest, member);
      if (!made) return std::move(made).error();
      for (Unit& unit : *made) {
        std::string name = member.source.instances.empty() ? member.name : member.name + ':' + unit.entries().front();
        if (!names.insert(name).second) {
          return make_error(Code::InvalidArgument, "cannot read the units of " + file + ": two are called '" + name +
                                                       "'; give the [[unit]] or the family another name");
        }
        units.emplace_back(std::move(name), std::move(unit));
      }
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
             "Returns the units of a kiln.toml by name (a kernel of a family: `family:entry`), equal to those in a "
             "bundle of it.");
}

}  // namespace kiln::python
