#include "support/project_units.hpp"

#include "bench/cub_units.hpp"
#include "bench/units.hpp"
#include "members.hpp"
#include "session/manifest.hpp"
#include "session/source_unit.hpp"
#include "support/recipes.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {
namespace {

Unit with_cub(Unit unit) {
  unit = unit.options(cub_options());
  for (const std::string& root : cub_roots()) unit = unit.include_root(root);
  return unit;
}

// The kernel that examples/installed has as a text in its program.
Unit installed_example() {
  const std::string program = repository_text("examples/installed/saxpy.cpp");
  const std::size_t start = program.find("R\"(") + 3;
  return Unit::cuda("saxpy.cu", program.substr(start, program.find(")\"", start) - start)).entry("saxpy");
}

/// What a manifest of kernels/ lists.
std::vector<Unit> listed_in(const std::string& manifest_path) {
  std::vector<Unit> units;
  const Manifest manifest = read_manifest(KILN_SOURCE_DIR "/kernels/" + manifest_path).value();
  for (const Manifest::Member& member : manifest.members) units.push_back(read_unit(member.source).value());
  return units;
}

}  // namespace

std::vector<ProjectUnit> project_units() {
  std::vector<ProjectUnit> all;
  all.push_back({Unit::cuda("saxpy.cu", repository_text("kernels/saxpy.cu")).entry("saxpy").entry("scale<float>")});
  for (const semiring::Member& member : semiring::members()) {
    const Unit unit = *semiring::find_unit(semiring::Backend::Cuda, member.name);
    all.push_back({unit, false, false, unit.entries()[0] != "gemm_max_plus_f32"});
  }
  const std::vector<Unit> shapes = listed_in("geometry/kiln.toml");
  for (std::size_t i = 0; i < shapes.size(); ++i) all.push_back({shapes[i], false, false, i > 0});
  for (const Unit& unit : listed_in("spatial/kiln.toml")) all.push_back({unit, false, false, true});
  all.push_back({installed_example()});
  all.push_back({bench::small_unit()});
  all.push_back({bench::large_unit(cub_roots()), true});
  const std::vector<Unit> eight = bench::cub_units(cub_roots());
  for (std::size_t i = 0; i < eight.size(); ++i) all.push_back({eight[i], true, true, i > 0});
  all.push_back({with_cub(Unit::cuda("sum.cu", cub_source())).entry("sum"), true});
  const std::string header = "#include <nv/target>\nextern \"C\" __global__ void k(int* p) { *p = 7; }\n";
  all.push_back({Unit::cuda("header.cu", header).include_root(cub_roots()[0]).entry("k")});
  return all;
}

}  // namespace kiln::test
