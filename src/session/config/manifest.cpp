// SPDX-License-Identifier: Apache-2.0
#include "session/config/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/json.hpp"
#include "core/cccl_spec.hpp"
#include "session/config/member_reader.hpp"

namespace kiln {
namespace {

using Kind = TomlValue::Kind;

constexpr std::size_t kMaxFileSize = 16 << 20;
constexpr std::size_t kMaxMembers = 100'000;

constexpr Format kBundleNamespace = {
    .form = Format::Form::Namespace,
    .valid = "at most 64 lower-case letters, digits and -_. with / between its parts, such as \"acme/vision\""};
constexpr Format kEpoch = {.valid = "a whole number, 0 or more"};
constexpr Format kAlgorithms = {.valid = "a list of tables: [[cccl]]"};
constexpr Format kSources = {.valid = "a list of tables: [[unit]]"};
constexpr Format kFamilies = {.valid = "a list of tables: [[family]]"};
constexpr Format kInstances = {.valid = "a table of entries and their text: [family.instances]"};
constexpr Format kBackend = {.form = Format::Form::Choice, .valid = "'cuda' or 'opencl'", .words = {"cuda", "opencl"}};

/// Converts a TOML value to JSON, the form from which a spec is parsed.
SortedJson json_of(const TomlValue& value) {
  SortedJson out;
  switch (value.kind) {
    case Kind::Text: return value.text;
    case Kind::Integer:
      // The numbers of a spec are counts and sizes.
      return value.integer >= 0 ? SortedJson(static_cast<std::uint64_t>(value.integer)) : SortedJson(value.integer);
    case Kind::Boolean: return value.boolean;
    case Kind::Array:
      out = SortedJson::array();
      for (const TomlValue& item : value.items) out.push_back(json_of(item));
      break;
    case Kind::Table:
      out = SortedJson::object();
      for (const auto& [name, member] : value.fields) out[name] = json_of(member);
      break;
    case Kind::Fraction:
    case Kind::Date: break;  // null, which no field accepts
  }
  return out;
}

/// Returns the value at a location such as `iterators[1].advance.name`, or its closest existing parent.
const TomlValue& value_at(const TomlValue& table, std::string_view place) {
  const TomlValue* at = &table;
  while (!place.empty()) {
    const std::size_t end = std::min(place.find_first_of(".["), place.size());
    const TomlValue* next = nullptr;
    if (end == 0 && place.front() == '[') {
      std::size_t index = 0;
      const auto [stop, error] = std::from_chars(place.data() + 1, place.data() + place.size(), index);
      if (error == std::errc() && index < at->items.size()) next = &at->items[index];
      place.remove_prefix(std::min(static_cast<std::size_t>(stop - place.data()) + 1, place.size()));
    } else {
      next = at->find(place.substr(0, end));
      place.remove_prefix(end);
    }
    if (!place.empty() && place.front() == '.') place.remove_prefix(1);
    if (next == nullptr) break;
    at = next;
  }
  return *at;
}

/// Reads the tables of a kiln.toml.
class ManifestReader : private TableReader {
 public:
  explicit ManifestReader(const std::string& directory) : directory_(directory) {}
  Result<Manifest> read_manifest(const TomlValue& file);

 private:
  std::string below(const std::string& path) const { return join_path(directory_, path); }

  void algorithm(const TomlValue& table);
  void predefined(const TomlValue& table);
  void source(const TomlValue& table);
  void family(const TomlValue& table);
  void add_source(const TomlValue& table, SourceUnit unit, const std::string& backend,
                  const std::vector<std::string>& includes);
  void instances(const TomlValue& table, SourceUnit& unit);
  void add(const TomlValue& at, Manifest::UnitEntry member);

  const std::string& directory_;
  Manifest manifest_;
  std::set<std::string> names_;
  std::size_t count_ = 0;  // units of all members
};

void ManifestReader::add(const TomlValue& at, Manifest::UnitEntry member) {
  if (!names_.insert(member.name).second) fail(at, "two units are named '" + member.name + "'");
  count_ += std::max<std::size_t>(member.source.instances.size(), 1);
  manifest_.members.push_back(std::move(member));
  if (count_ > kMaxMembers) fail(at, "there are more than 100000 units");
}

/// Handles `spec = "radix_sort_u64_i32"`, or `spec = "all"` for all predefined specs.
void ManifestReader::predefined(const TomlValue& table) {
  std::string which;
  std::string name;
  read(table, {{"spec", &which, kTextFormat}, {"name", &name, kTextFormat}});
  if (which == "all") {
    if (!name.empty()) fail(*table.find("name"), "'name' requires a single spec");
    for (const cccl::Spec& spec : cccl::predefined_specs()) add(table, {spec.name, spec, {}});
    return;
  }
  Result<cccl::Spec> spec = cccl::find_predefined(which);
  if (!spec) return fail(*table.find("spec"), spec.error().message);
  if (!name.empty()) spec->name = name;
  const std::string called = spec->name;
  add(table, {called, std::move(*spec), {}});
}

void ManifestReader::algorithm(const TomlValue& table) {
  if (table.find("spec") != nullptr) return predefined(table);
  Result<cccl::Spec> spec = cccl::Spec::parse(json_text(json_of(table)));
  if (!spec) return fail(value_at(table, cccl::error_field(spec.error())), spec.error().message);
  spec->name = spec->unit().name();
  const std::string called = spec->name;
  add(table, {called, std::move(*spec), {}});
}

void ManifestReader::add_source(const TomlValue& table, SourceUnit unit, const std::string& backend,
                                const std::vector<std::string>& includes) {
  unit.opencl = backend.empty() ? is_opencl_file(unit.file) : backend == "opencl";
  for (const std::string& include : includes) unit.include_roots.push_back({below(include), {}});
  const std::string called = !unit.name.empty() ? unit.name : unit.file.substr(unit.file.rfind('/') + 1);
  unit.file = below(unit.file);
  add(table, {called, std::nullopt, std::move(unit)});
}

void ManifestReader::source(const TomlValue& table) {
  SourceUnit unit;
  std::string backend;
  std::vector<std::string> includes;
  read(table, {{"name", &unit.name, kTextFormat},
               {"source", &unit.file, kTextFormat, "add the path of the unit's file"},
               {"backend", &backend, kBackend},
               {"include", &includes, kTextListFormat},
               {"options", &unit.options, kTextListFormat},
               {"entries", &unit.entries, kTextListFormat}});
  add_source(table, std::move(unit), backend, includes);
}

/// Reads `entry = "text"` lines. The text of an instance can be empty: a name expression instantiates a template.
void ManifestReader::instances(const TomlValue& table, SourceUnit& unit) {
  for (const auto& [entry, text] : table.fields) {
    const bool valid = text.kind == Kind::Text && text.text.find('\0') == std::string::npos;
    if (!valid) fail(text, "the text of instance '" + entry + "' must be a string");
    if (entry.empty() || entry.find('\0') != std::string::npos) fail(text, "the entry of an instance is its kernel");
    unit.instances.push_back({entry, text.text});
  }
  if (unit.instances.empty()) fail(table, "a family has at least one instance");
}

void ManifestReader::family(const TomlValue& table) {
  SourceUnit unit;
  std::string backend;
  std::vector<std::string> includes;
  const TomlValue* listed = nullptr;
  read(table, {{"name", &unit.name, kTextFormat},
               {"preamble", &unit.file, kTextFormat, "add the path of the text that precedes each instance"},
               {"backend", &backend, kBackend},
               {"include", &includes, kTextListFormat},
               {"options", &unit.options, kTextListFormat},
               {"instances", &listed, kInstances, "list the kernels in [family.instances]"}});
  if (listed != nullptr) instances(*listed, unit);
  add_source(table, std::move(unit), backend, includes);
}

Result<Manifest> ManifestReader::read_manifest(const TomlValue& file) {
  std::vector<std::string> architectures;
  std::vector<const TomlValue*> algorithms;
  std::vector<const TomlValue*> sources;
  std::vector<const TomlValue*> families;
  read(file, {{"namespace", &manifest_.name_space, kBundleNamespace},
              {"epoch", &manifest_.epoch, kEpoch},
              {"architectures", &architectures, kTextListFormat},
              {"cccl", &algorithms, kAlgorithms},
              {"unit", &sources, kSources},
              {"family", &families, kFamilies}});
  std::vector<Target>& targets = manifest_.architectures;
  for (std::size_t i = 0; i != architectures.size(); ++i) {
    Result<Target> target = Target::parse(architectures[i]);
    if (!target) {
      fail(file.find("architectures")->items[i], target.error().message);
    } else if (std::find(targets.begin(), targets.end(), *target) == targets.end()) {
      targets.push_back(std::move(*target));
    }
  }
  for (const TomlValue* const table : algorithms) algorithm(*table);
  for (const TomlValue* const table : sources) source(*table);
  for (const TomlValue* const table : families) family(*table);
  if (error()) return *error();
  return std::move(manifest_);
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, const std::string& directory) {
  const Result<TomlValue> file = parse_toml(text);
  if (!file) return file.error();
  return ManifestReader(directory).read_manifest(*file);
}

Result<Manifest> read_manifest(const std::string& path) {
  if (const std::optional<FileStamp> stamp = stamp_of(path.c_str()); stamp && stamp->size > kMaxFileSize) {
    return make_error(Code::InvalidArgument, path + ": the file is larger than 16 MiB");
  }
  const Result<std::optional<Bytes>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  if (!*bytes) return make_error(Code::Io, "there is no file " + path);
  // Paths in a file in the working directory are used as given, like paths on a command line there.
  const std::string directory = path.find('/') == std::string::npos ? std::string() : parent_path(path);
  Result<Manifest> manifest = parse_manifest((*bytes)->view(), directory);
  if (!manifest) return make_error(manifest.error().code, path + ": " + manifest.error().message);
  return manifest;
}

}  // namespace kiln
