#include "session/config/source_unit.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/files/files.hpp"

namespace kiln {
namespace {

// Returns true if a source includes a quoted name, which compilers look up next to the source first.
bool has_quoted_include(std::string_view source) {
  constexpr std::string_view kBlanks = " \t";
  const auto skip_blanks = [&](std::size_t at) {
    return std::min(source.find_first_not_of(kBlanks, at), source.size());
  };
  for (std::size_t at = source.find('#'); at != std::string_view::npos; at = source.find('#', at + 1)) {
    const std::size_t word = skip_blanks(at + 1);
    if (source.substr(word, 7) != "include") continue;
    const std::size_t quote = skip_blanks(word + 7);
    if (quote < source.size() && source[quote] == '"') return true;
  }
  return false;
}

}  // namespace

bool is_opencl_file(std::string_view file) { return file.ends_with(".cl"); }

Unit make_unit(const SourceUnit& unit, std::string text, bool from_file) {
  const bool beside = !unit.opencl && from_file && has_quoted_include(text);
  const std::string name = !unit.name.empty() ? unit.name : unit.file.substr(unit.file.rfind('/') + 1);
  Unit made = unit.opencl ? Unit::opencl(name, std::move(text)) : Unit::cuda(name, std::move(text));
  for (const std::string& entry : unit.entries) made = made.with_entry(entry);
  if (beside) made = made.with_include_root(parent_path(unit.file));
  for (const IncludeRoot& root : unit.include_roots) made = made.with_include_root(root.path, root.sentinel);
  return made.with_options(unit.options);
}

Result<Unit> read_unit(const SourceUnit& unit) {
  const Result<std::optional<Bytes>> bytes = read_file(unit.file);
  if (!bytes) return bytes.error();
  if (!*bytes) return make_error(Code::Io, "there is no file " + unit.file);
  return make_unit(unit, std::string((*bytes)->view()));
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
