// SPDX-License-Identifier: Apache-2.0
#include "bench/workloads/workload.hpp"

#include <algorithm>
#include <vector>

#include <kiln/cccl.hpp>

#include "base/error.hpp"
#include "kernel_list.hpp"
#include "session/config/manifest.hpp"
#include "session/config/source_unit.hpp"
#include "support/fixtures/workload_requirements.hpp"

namespace kiln::bench {
namespace {

/// Returns the named units of examples/kernels/geometry, or all. The manifest lists bounds.cu first.
Result<Units> geometry(const std::vector<std::string>& names) {
  const auto manifest = read_manifest(KILN_SOURCE_DIR "/examples/kernels/geometry/kiln.toml");
  if (!manifest) return manifest.error();
  Units units;
  for (const Manifest::UnitEntry& member : manifest->members) {
    if (!names.empty() && std::find(names.begin(), names.end(), member.name) == names.end()) continue;
    auto unit = read_unit(member.source);
    if (!unit) return std::move(unit).error();
    units.push_back(std::move(*unit));
  }
  return units;
}

Result<Units> geometry_and(const std::vector<std::string>& names, const Units& specs) {
  auto units = geometry(names);
  if (units) units->insert(units->end(), specs.begin(), specs.end());
  return units;
}

Units semirings() {
  const auto unit = [](const std::string& name) { return *semiring::find_unit(semiring::Backend::Cuda, name); };
  const std::string& first = semiring::typical_names().front();
  Units units{unit(first)};
  for (const semiring::Member& member : semiring::members()) {
    if (member.name != first) units.push_back(unit(member.name));
  }
  return units;
}

}  // namespace

Result<Units> workload_named(const std::string& name) {
  if (name == "31") return semirings();
  if (name == "all") return geometry_and({}, {cccl::predefined_specs().begin(), cccl::predefined_specs().end()});
  if (name == "sjoin") {
    return geometry_and({"bounds.cu", "grid.cu", "point_in_polygon.cu"}, test::workload_requirement("sjoin").units());
  }
  return make_error(Code::InvalidArgument, "unknown workload '" + name + "'");
}

}  // namespace kiln::bench
