// SPDX-License-Identifier: Apache-2.0
#include "bundle/provenance.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <kiln/version.hpp>

#include "base/error.hpp"
#include "base/json.hpp"

namespace kiln {
namespace {

constexpr const char* kStatementType = "https://in-toto.io/Statement/v1";
constexpr const char* kPredicateType = "https://slsa.dev/provenance/v1";
constexpr const char* kBuildType = "urn:kiln:bundle-create:1";
constexpr const char* kSubjectName = "kiln bundle index";
constexpr JsonLimits kStatementLimits{32, 50'000};
constexpr std::size_t kMaxSubjects = 1024;
constexpr std::size_t kMaxFieldLength = 2048;  // limit for fields that are shown

Error no_statement(std::string what) { return make_error(Code::Corrupt, std::move(what)); }

std::string string_at(const SortedJson& object, const char* name) {
  const SortedJson& value = member_of(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

Result<SortedJson> parse_statement(std::string_view text) {
  if (text.size() > kMaxProvenance) return no_statement("is larger than 1 MiB");
  Result<SortedJson> statement = parse_json(text, kStatementLimits);
  if (!statement) return no_statement(statement.error().message);
  if (string_at(*statement, "_type") != kStatementType) {
    return no_statement(std::string("is not an in-toto statement: its _type is not ") + kStatementType);
  }
  if (string_at(*statement, "predicateType") != kPredicateType) {
    return no_statement(std::string("has a predicateType other than ") + kPredicateType);
  }
  return statement;
}

Result<std::vector<Digest>> subjects_of(const SortedJson& statement) {
  std::vector<Digest> found;
  const SortedJson& subjects = member_of(statement, "subject");
  if (subjects.is_null()) return found;
  if (!subjects.is_array() || subjects.size() > kMaxSubjects) {
    return no_statement("has a subject that is not a list, or more than 1024 subjects");
  }
  for (const SortedJson& subject : subjects) {
    if (const auto digest = Digest::from_hex(string_at(member_of(subject, "digest"), "sha256"))) {
      found.push_back(*digest);
    }
  }
  return found;
}

void read_source(const SortedJson& dependencies, Provenance& out) {
  if (!dependencies.is_array()) return;
  for (const SortedJson& dependency : dependencies) {
    const SortedJson& digest = member_of(dependency, "digest");
    std::string commit = string_at(digest, "gitCommit");
    if (commit.empty()) commit = string_at(digest, "sha1");
    if (commit.empty()) continue;
    out.source = string_at(dependency, "uri");
    out.commit = std::move(commit);
    return;
  }
}

SortedJson made_of(const ProvenanceSource& from, const std::vector<BundleCompiler>& compilers) {
  SortedJson parameters = SortedJson::object();
  SortedJson dependencies = SortedJson::array();
  if (!from.source.empty()) parameters["source"] = from.source;
  if (!from.source.empty() || !from.commit.empty()) {
    SortedJson source = {{"name", "source"}};
    if (!from.source.empty()) source["uri"] = from.source;
    if (!from.commit.empty()) source["digest"] = {{"gitCommit", from.commit}};
    dependencies.push_back(std::move(source));
  }
  for (const BundleCompiler& compiler : compilers) {
    dependencies.push_back(
        {{"name", compiler.name + ' ' + compiler.version}, {"digest", {{"kilnCompiler", compiler.digest.hex()}}}});
  }
  return {{"_type", kStatementType},
          {"predicateType", kPredicateType},
          {"predicate",
           {{"buildDefinition",
             {{"buildType", kBuildType},
              {"externalParameters", std::move(parameters)},
              {"resolvedDependencies", std::move(dependencies)}}},
            {"runDetails", {{"builder", {{"id", from.builder}, {"version", {{"kiln", version()}}}}}}}}}};
}

}  // namespace

std::vector<BundleCompiler> compilers_of(const BundleDescription& description) {
  std::set<BundleCompiler> compilers;
  for (const BundleDescription::Artifact& artifact : description.artifacts) {
    compilers.insert({artifact.compiler, artifact.version, artifact.compiler_digest});
  }
  return {compilers.begin(), compilers.end()};
}

Result<Provenance> Provenance::parse(std::string_view text) {
  const Result<SortedJson> statement = parse_statement(text);
  if (!statement) return statement.error();
  const SortedJson& predicate = member_of(*statement, "predicate");
  const SortedJson& definition = member_of(predicate, "buildDefinition");
  Provenance out;
  out.builder = string_at(member_of(member_of(predicate, "runDetails"), "builder"), "id");
  out.build_type = string_at(definition, "buildType");
  if (out.builder.empty() || out.build_type.empty()) {
    return no_statement("lacks predicate.runDetails.builder.id or predicate.buildDefinition.buildType");
  }
  read_source(member_of(definition, "resolvedDependencies"), out);
  for (const std::string* field : {&out.builder, &out.build_type, &out.source, &out.commit}) {
    if (field->size() > kMaxFieldLength) return no_statement("names a builder or a source with more than 2048 bytes");
  }
  Result<std::vector<Digest>> subjects = subjects_of(*statement);
  if (!subjects) return subjects.error();
  out.subjects = std::move(*subjects);
  return out;
}

bool Provenance::is_about(const Digest& index) const {
  return std::find(subjects.begin(), subjects.end(), index) != subjects.end();
}

Result<std::string> provenance_statement(const ProvenanceSource& from, const std::vector<BundleCompiler>& compilers,
                                         const Digest& index) {
  const auto wrong = [](const std::string& what) {
    return make_error(Code::InvalidArgument, "the provenance " + what);
  };
  SortedJson statement;
  if (from.statement.empty()) {
    statement = made_of(from, compilers);
  } else {
    Result<SortedJson> given = parse_statement(from.statement);
    if (!given) return wrong(given.error().message);
    statement = std::move(*given);
  }
  const SortedJson& subjects = member_of(statement, "subject");
  if (subjects.is_null() || subjects.empty()) {
    statement["subject"] = SortedJson::array({{{"name", kSubjectName}, {"digest", {{"sha256", index.hex()}}}}});
  }
  const std::string text = json_text(statement);
  const Result<Provenance> checked = Provenance::parse(text);
  if (!checked) return wrong(checked.error().message);
  if (!checked->is_about(index)) {
    return wrong("is about other content: none of its subjects has the SHA-256 of this bundle's index, " + index.hex() +
                 "; remove its subject or build the bundle that it describes");
  }
  return text;
}

}  // namespace kiln
