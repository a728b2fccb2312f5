#include "session/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "core/cccl_spec.hpp"
#include "session/toml_reader.hpp"
#include "trust/statement.hpp"

namespace kiln {
namespace {

using Kind = TomlValue::Kind;

constexpr std::size_t kMostText = 16 << 20;
constexpr std::size_t kMostMembers = 100'000;

/// A TOML value as JSON, in which form a spec is read.
SortedJson json_of(const TomlValue& value) {
  SortedJson out;
  switch (value.kind) {
    case Kind::Text: return value.text;
    case Kind::Integer:
      // A spec's numbers are counts and sizes.
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
    case Kind::Date: break;  // null, which nothing takes
  }
  return out;
}

/// The value at a place such as `iterators[1].advance.name`, or as near to it as there is one.
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
class ManifestReader : private TomlReader {
 public:
  explicit ManifestReader(const std::string& folder) : folder_(folder) {}
  Result<Manifest> read(const TomlValue& file);

 private:
  std::string below(const std::string& path) const { return join_path(folder_, path); }

  void bundle(const TomlValue& file);
  void architectures(const TomlValue& file);
  void algorithm(const TomlValue& table);
  void founding(const TomlValue& table);
  void source(const TomlValue& table);
  void add(const TomlValue& at, Manifest::Member member);

  const std::string& folder_;
  Manifest manifest_;
  std::set<std::string> names_;
};

/// Of a bundle of all units: who speaks, and as of when.
void ManifestReader::bundle(const TomlValue& file) {
  if (const TomlValue* const at = file.find("namespace"); at != nullptr) {
    if (at->kind != Kind::Text || !is_name_space(at->text)) {
      return fail(*at,
                  "'namespace' is at most 64 lower-case letters, digits and -_. with / between its parts, such as "
                  "\"acme/vision\"");
    }
    manifest_.name_space = at->text;
  }
  if (const TomlValue* const at = file.find("epoch"); at != nullptr) {
    if (at->kind != Kind::Integer || at->integer < 0)
      return fail(*at, "'epoch' is a whole number that is not negative");
    manifest_.epoch = static_cast<std::uint64_t>(at->integer);
  }
}

void ManifestReader::architectures(const TomlValue& file) {
  const std::vector<std::string> names = texts(file, "architectures");
  for (std::size_t i = 0; i != names.size(); ++i) {
    Result<Target> target = Target::parse(names[i]);
    if (!target) {
      fail(file.find("architectures")->items[i], target.error().message);
      return;
    }
    std::vector<Target>& all = manifest_.architectures;
    if (std::find(all.begin(), all.end(), *target) == all.end()) all.push_back(std::move(*target));
  }
}

void ManifestReader::add(const TomlValue& at, Manifest::Member member) {
  if (!names_.insert(member.name).second) fail(at, "two units are called '" + member.name + "'");
  manifest_.members.push_back(std::move(member));
  if (manifest_.members.size() > kMostMembers) fail(at, "there are more than 100000 units");
}

/// `spec = "radix_sort_u64_i32"`, or `spec = "founding"` for all of them.
void ManifestReader::founding(const TomlValue& table) {
  known(table, {"spec", "name"});
  const std::string which = text(table, "spec");
  const std::string name = text(table, "name");
  if (which == "founding") {
    if (!name.empty()) fail(*table.find("name"), "one name is for one spec");
    for (const cccl::Spec& spec : cccl::founding()) add(table, {spec.name, spec, {}});
    return;
  }
  Result<cccl::Spec> spec = cccl::named(which);
  if (!spec) return fail(*table.find("spec"), spec.error().message);
  if (!name.empty()) spec->name = name;
  const std::string called = spec->name;
  add(table, {called, std::move(*spec), {}});
}

void ManifestReader::algorithm(const TomlValue& table) {
  if (table.find("spec") != nullptr) return founding(table);
  Result<cccl::Spec> spec = cccl::Spec::parse(json_text(json_of(table)));
  if (!spec) return fail(value_at(table, cccl::field_of(spec.error())), spec.error().message);
  spec->name = spec->unit().name();
  const std::string called = spec->name;
  add(table, {called, std::move(*spec), {}});
}

void ManifestReader::source(const TomlValue& table) {
  known(table, {"name", "source", "backend", "include", "options", "entries"});
  if (table.find("source") == nullptr) return fail(table, "a unit needs a 'source', the path of its file");
  const std::string file = text(table, "source");
  const std::string backend = text(table, "backend");
  if (!backend.empty() && backend != "cuda" && backend != "opencl")
    fail(*table.find("backend"), "'backend' is 'cuda' or 'opencl'");
  SourceUnit unit;
  unit.file = below(file);
  unit.name = text(table, "name");
  unit.opencl = backend.empty() ? is_opencl_file(file) : backend == "opencl";
  unit.entries = texts(table, "entries");
  for (const std::string& include : texts(table, "include")) unit.include_roots.push_back({below(include), {}});
  unit.options = texts(table, "options");
  const std::string called = !unit.name.empty() ? unit.name : file.substr(file.rfind('/') + 1);
  add(table, {called, std::nullopt, std::move(unit)});
}

Result<Manifest> ManifestReader::read(const TomlValue& file) {
  known(file, {"namespace", "epoch", "architectures", "cccl", "unit"});
  bundle(file);
  architectures(file);
  tables(file, "cccl", [&](const TomlValue& table) { algorithm(table); });
  tables(file, "unit", [&](const TomlValue& table) { source(table); });
  if (error()) return *error();
  return std::move(manifest_);
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, const std::string& folder) {
  if (text.size() > kMostText) return failure(Code::InvalidArgument, "it has more than 16 MiB");
  const Result<TomlValue> file = parse_toml(text);
  if (!file) return file.error();
  return ManifestReader(folder).read(*file);
}

Result<Manifest> read_manifest(const std::string& path) {
  const Result<std::optional<Bytes>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  if (!*bytes) return failure(Code::Io, "there is no file " + path);
  // A file in the working folder names others as a command line there would.
  const std::string folder = path.find('/') == std::string::npos ? std::string() : folder_of(path);
  Result<Manifest> manifest = parse_manifest((*bytes)->view(), folder);
  if (!manifest) return failure(manifest.error().code, path + ": " + manifest.error().message);
  return manifest;
}

}  // namespace kiln
