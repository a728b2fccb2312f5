// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_description.hpp"

#include "base/error.hpp"
#include "base/json.hpp"
#include "bundle/bundle_format.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMark = "bundle description 1";
constexpr std::size_t kMaxDescriptionDepth = 32;  // kiln's own files use five levels; future members may be deeper

Error not_a_description(std::string what) { return corrupt_bundle("description " + std::move(what)); }

Json json_of(const BundleDescription::Artifact& artifact) {
  Json entries = Json::array();
  for (const EntryPoint& entry : artifact.entries) entries.push_back({{"name", entry.name}, {"symbol", entry.symbol}});
  Json files = Json::array();
  for (const BundleDescription::File& file : artifact.files) {
    Json out = {{"place", file.place}, {"name", file.name}, {"state", file.state}};
    if (!file.digest.empty()) out["digest"] = file.digest;
    files.push_back(std::move(out));
  }
  return {{"unit", artifact.unit},
          {"kind", artifact.kind},
          {"unit_key", artifact.unit_key.hex()},
          {"target", artifact.target.name()},
          {"form", to_string(artifact.target.form)},
          {"key", artifact.key.hex()},
          {"request", artifact.request.hex()},
          {"compiler", artifact.compiler},
          {"version", artifact.version},
          {"compiler_digest", artifact.compiler_digest.hex()},
          {"bytes", artifact.bytes},
          {"entries", std::move(entries)},
          {"files", std::move(files)}};
}

/// Reads members of JSON objects. `ok()` is false after the first member that is missing or has the wrong type.
class MemberReader {
 public:
  std::string text(const SortedJson& object, const char* name) {
    const SortedJson& value = member_of(object, name);
    if (!value.is_string()) return fail(), std::string();
    return value.get<std::string>();
  }
  std::string optional_text(const SortedJson& object, const char* name) {
    return object.find(name) == object.end() ? std::string() : text(object, name);
  }
  Digest digest(const SortedJson& object, const char* name) {
    const auto found = Digest::from_hex(text(object, name));
    if (!found) fail();
    return found.value_or(Digest{});
  }
  std::uint64_t number(const SortedJson& object, const char* name) {
    const SortedJson& value = member_of(object, name);
    if (!value.is_number_unsigned()) return fail(), 0;
    return value.get<std::uint64_t>();
  }
  /// Returns the objects of an array.
  std::vector<const SortedJson*> objects(const SortedJson& object, const char* name) {
    std::vector<const SortedJson*> all;
    const SortedJson& list = member_of(object, name);
    if (!list.is_array()) return fail(), all;
    for (const SortedJson& item : list) {
      if (!item.is_object()) return fail(), all;
      all.push_back(&item);
    }
    return all;
  }
  void fail() { ok_ = false; }
  bool ok() const { return ok_; }

 private:
  bool ok_ = true;
};

Target target_from(MemberReader& in, const SortedJson& object) {
  const std::string name = in.text(object, "target");
  const std::string form = in.text(object, "form");
  if (form == to_string(Form::OpenClBinary)) return Target::opencl(name);
  if (form == to_string(Form::External)) return Target::external(name);
  const auto target = Target::parse(name);
  if (!target || to_string(target->form) != form) {
    in.fail();
    return {};
  }
  return *target;
}

BundleDescription::Artifact artifact_from(MemberReader& in, const SortedJson& object) {
  BundleDescription::Artifact artifact;
  artifact.unit = in.text(object, "unit");
  artifact.kind = in.text(object, "kind");
  artifact.unit_key.digest = in.digest(object, "unit_key");
  artifact.target = target_from(in, object);
  artifact.key.digest = in.digest(object, "key");
  artifact.request.digest = in.digest(object, "request");
  artifact.compiler = in.text(object, "compiler");
  artifact.version = in.text(object, "version");
  artifact.compiler_digest = in.digest(object, "compiler_digest");
  artifact.bytes = in.number(object, "bytes");
  for (const SortedJson* entry : in.objects(object, "entries")) {
    artifact.entries.push_back({in.text(*entry, "name"), in.text(*entry, "symbol")});
  }
  for (const SortedJson* file : in.objects(object, "files")) {
    artifact.files.push_back(
        {in.text(*file, "place"), in.text(*file, "name"), in.text(*file, "state"), in.optional_text(*file, "digest")});
  }
  return artifact;
}

}  // namespace

std::string BundleDescription::encode() const {
  Json all = Json::array();
  for (const Artifact& artifact : artifacts) all.push_back(json_of(artifact));
  Json out = {{"kiln", kMark}, {"generator", generator}, {"artifacts", std::move(all)}};
  if (!provenance.empty()) out["provenance"] = provenance;
  // Names that are not UTF-8 are display text here; they are stored unchanged where they matter.
  return json_text(out);
}

Result<BundleDescription> BundleDescription::parse(std::string_view text, const Limits& limits) {
  const Result<SortedJson> json = parse_json(text, {kMaxDescriptionDepth, limits.values});
  if (!json) return make_error(json.error().code, not_a_description(json.error().message).message);
  if (!json->is_object()) return not_a_description("is not a JSON object");
  MemberReader in;
  if (const std::string mark = in.text(*json, "kiln"); mark != kMark) {
    return not_a_description("has format '" + mark + "'; this kiln reads '" + std::string(kMark) + "'");
  }
  BundleDescription description;
  description.generator = in.text(*json, "generator");
  description.provenance = in.optional_text(*json, "provenance");
  const std::vector<const SortedJson*> artifacts = in.objects(*json, "artifacts");
  if (artifacts.size() > limits.artifacts) return not_a_description("has more artifacts than the index has rows");
  description.artifacts.reserve(artifacts.size());
  for (const SortedJson* artifact : artifacts) {
    description.artifacts.push_back(artifact_from(in, *artifact));
    if (!in.ok()) {
      return not_a_description("lacks a member of artifact " + std::to_string(description.artifacts.size()) +
                               ", or a member has the wrong type");
    }
  }
  if (!in.ok()) return not_a_description("lacks the generator or the artifacts");
  return description;
}

}  // namespace kiln
