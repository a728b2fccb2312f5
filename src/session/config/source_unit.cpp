// SPDX-License-Identifier: Apache-2.0
#include "session/config/source_unit.hpp"

#include <utility>

#include "base/error.hpp"
#include "core/unit_file.hpp"

namespace kiln {

bool is_opencl_file(std::string_view file) { return file.ends_with(".cl"); }

Unit make_unit(const SourceUnit& unit, std::string text, bool from_file) {
  const std::string name = !unit.name.empty() ? unit.name : unit_name_of_file(unit.file);
  const char* const kind = unit.opencl ? "opencl" : "cuda";
  Unit made =
      from_file ? unit_of_file(kind, name, unit.file, std::move(text)) : Unit::of_kind(kind, name, std::move(text));
  for (const std::string& entry : unit.entries) made = made.with_entry(entry);
  for (const IncludeRoot& root : unit.include_roots) made = made.with_include_root(root.path, root.sentinel);
  return made.with_options(unit.options);
}

Result<Unit> read_unit(const SourceUnit& unit) {
  Result<std::string> text = read_source(unit.file);
  if (!text) return std::move(text).error();
  return make_unit(unit, *std::move(text));
}

Result<std::vector<Unit>> read_units(const SourceUnit& unit) {
  Result<Unit> file = read_unit(unit);
  if (!file) return file.error();
  if (unit.instances.empty()) return std::vector<Unit>{std::move(*file)};
  if (file->source().empty()) {
    return make_error(Code::InvalidArgument,
                      unit.file + ": the preamble of a family is empty; list the kernels as units");
  }
  const Unit family = file->with_preamble(file->source());  // shared by all instances and hashed once
  std::vector<Unit> units;
  for (const auto& [entry, source] : unit.instances) units.push_back(family.instance(entry, source));
  return units;
}

}  // namespace kiln
