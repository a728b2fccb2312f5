// SPDX-License-Identifier: Apache-2.0
#include "core/recipe.hpp"

#include <algorithm>
#include <charconv>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "core/dependency_set_codec.hpp"
#include "core/unit_codec.hpp"

namespace kiln {
namespace {

constexpr std::uint8_t kRecipeVersion = 2;
constexpr std::uint8_t kMetadataVersion = 1;

Result<Form> form_of(std::uint8_t value) {
  if (value < 1 || value > static_cast<std::uint8_t>(Form::External))
    return make_error(Code::Corrupt, "artifact: unknown form " + std::to_string(value));
  return static_cast<Form>(value);
}

Status read_metadata(BinaryReader in, Artifact& artifact) {
  const std::uint8_t version = in.u8();
  if (version != kMetadataVersion) {
    return make_error(Code::Corrupt, "artifact metadata: unknown version " + std::to_string(version));
  }
  artifact.target.architecture = in.text();
  const Result<Form> form = form_of(in.u8());
  if (!form) return form.error();
  artifact.target.form = *form;
  const std::uint32_t count = in.count(8);
  artifact.entries.reserve(count);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    EntryPoint& entry = artifact.entries.emplace_back();
    entry.name = in.text();
    entry.symbol = in.text();
  }
  artifact.metadata.unit = in.text();
  artifact.metadata.compiler = in.text();
  artifact.metadata.cost_ms = in.f64();
  artifact.metadata.log = in.text();
  if (!in.at_end()) return make_error(Code::Corrupt, "artifact metadata: truncated or trailing bytes");
  return {};
}

}  // namespace

void CompilerIdentity::add_environment(const std::vector<std::pair<std::string, std::string>>& more) {
  environment.insert(environment.end(), more.begin(), more.end());
  std::sort(environment.begin(), environment.end());
  environment.erase(std::unique(environment.begin(), environment.end()), environment.end());
}

PathRoots Recipe::path_roots() const {
  PathRoots places{working_directory, unit.include_roots()};
  places.roots.insert(places.roots.end(), compiler.roots.begin(), compiler.roots.end());
  return places;
}

std::optional<int> capability_of(const Target& target, bool variants) {
  const std::string& name = target.architecture;
  int number = 0;
  if (!name.starts_with("sm_")) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + 3, name.data() + name.size(), number);
  const bool whole = end == name.data() + name.size();
  if (error != std::errc() || number <= 0 || (!whole && !variants)) return std::nullopt;
  return number;
}

Target effective_target(const Unit& unit, Target target) {
  if (unit.kind() == "cccl" && target.form == Form::Cubin) target.form = Form::Cccl;
  return target;
}

RequestKey Recipe::request_key() const {
  BinaryWriter out;
  out.text("kiln request 1").digest(unit.key().digest);
  out.text(target.architecture).u8(static_cast<std::uint8_t>(target.form));
  out.text(compiler.name).digest(compiler.digest).u32(static_cast<std::uint32_t>(compiler.environment.size()));
  for (const auto& [name, value] : compiler.environment) out.text(name).text(value);
  return {sha256(out.bytes())};
}

ArtifactKey artifact_key(const RequestKey& request, const DependencySet& dependency_set) {
  Sha256 hash;
  {
    HashingWriter out(hash);
    out.text("kiln key 1").digest(request.digest);
    write_dependency_set(out, dependency_set);
  }
  return {hash.finish()};
}

std::string encode(const Recipe& recipe) {
  BinaryWriter out;
  out.u8(kRecipeVersion);
  write_unit(out, recipe.unit);
  out.text(recipe.target.architecture).u8(static_cast<std::uint8_t>(recipe.target.form));
  out.text(recipe.compiler.name).text(recipe.compiler.version).text(recipe.compiler.path);
  out.digest(recipe.compiler.digest).u32(static_cast<std::uint32_t>(recipe.compiler.environment.size()));
  for (const auto& [name, value] : recipe.compiler.environment) out.text(name).text(value);
  out.u32(static_cast<std::uint32_t>(recipe.compiler.libraries.size()));
  for (const std::string& library : recipe.compiler.libraries) out.text(library);
  out.u32(static_cast<std::uint32_t>(recipe.compiler.roots.size()));
  for (const IncludeRoot& root : recipe.compiler.roots) out.text(root.path).text(root.sentinel);
  out.text(recipe.working_directory).u8(recipe.self_contained ? 1 : 0);
  return std::move(out).bytes();
}

Result<Recipe> decode_recipe(std::string_view bytes) {
  BinaryReader in(bytes);
  const std::uint8_t version = in.u8();
  if (version != kRecipeVersion) {
    return make_error(Code::Corrupt, "recipe: unknown version " + std::to_string(version));
  }
  Recipe recipe{read_unit(in), {}, {}, {}};
  recipe.target.architecture = in.text();
  const Result<Form> form = form_of(in.u8());
  if (!form) return form.error();
  if (*form == Form::External) return make_error(Code::Corrupt, "recipe: kiln does not compile for this form");
  recipe.target.form = *form;
  recipe.compiler.name = in.text();
  recipe.compiler.version = in.text();
  recipe.compiler.path = in.text();
  recipe.compiler.digest = in.digest();
  for (std::uint32_t i = 0, n = in.count(8); i < n; ++i) {
    std::string variable(in.text());
    recipe.compiler.environment.emplace_back(std::move(variable), std::string(in.text()));
  }
  for (std::uint32_t i = 0, n = in.count(4); i < n; ++i) recipe.compiler.libraries.emplace_back(in.text());
  for (std::uint32_t i = 0, n = in.count(8); i < n; ++i) {
    std::string path(in.text());
    recipe.compiler.roots.push_back({std::move(path), std::string(in.text())});
  }
  recipe.working_directory = in.text();
  recipe.self_contained = in.u8() != 0;
  if (!in.at_end()) return make_error(Code::Corrupt, "recipe: truncated or trailing bytes");
  return recipe;
}

std::string encode_metadata(const Artifact& artifact) {
  BinaryWriter out;
  out.u8(kMetadataVersion).text(artifact.target.architecture).u8(static_cast<std::uint8_t>(artifact.target.form));
  out.u32(static_cast<std::uint32_t>(artifact.entries.size()));
  for (const EntryPoint& entry : artifact.entries) out.text(entry.name).text(entry.symbol);
  out.text(artifact.metadata.unit)
      .text(artifact.metadata.compiler)
      .f64(artifact.metadata.cost_ms)
      .text(artifact.metadata.log);
  return std::move(out).bytes();
}

Result<Artifact> decode_metadata(std::string_view bytes) {
  Result<Artifact> artifact = Artifact();  // filled in place: a move takes a hundredth of the time of a hit
  if (Status read = read_metadata(BinaryReader(bytes), *artifact); !read) artifact = std::move(read).error();
  return artifact;
}

}  // namespace kiln
