#include "apps/kiln/bundle/render_bundle_json.hpp"

#include <algorithm>

#include "apps/kiln/output/json_common.hpp"
#include "base/enum_names.hpp"

namespace kiln::cli {
namespace {

Json signer_value(const std::optional<KeyId>& signer) { return signer ? Json(signer->hex()) : Json(); }

Json header_object(const std::string& path, const BundleHeader& header) {
  return {{"path", path},
          {"namespace", header.name_space},
          {"epoch", header.epoch},
          {"signer", signer_value(signer_of(header))}};
}

void add_trust(Json& object, const Status& trusted) {
  object["trusted"] = trusted.ok();
  if (!trusted) object["reason"] = trusted.error().message;
}

Json written_object(const WrittenBundle& written) {
  return {{"path", written.path},
          {"bytes", written.bytes},
          {"sha256", written.sha256},
          {"artifacts", written.artifacts},
          {"namespace", written.name_space},
          {"epoch", written.epoch},
          {"signer", signer_value(written.signer)}};
}

// Returns an artifact as in the bundle description, but with `entries` in the form that all other commands use.
Json artifact_object(const BundleDescription::Artifact& artifact) {
  Json object = Json::parse(BundleDescription{{}, {artifact}}.encode())["artifacts"][0];
  object["entries"] = entries_object(artifact.entries);
  return object;
}

Json provenance_object(const VerifiedBundle& verified) {
  const Provenance& provenance = *verified.provenance;
  Json compilers = Json::array();
  for (const BundleCompiler& compiler : verified.compilers) {
    compilers.push_back({{"name", compiler.name}, {"version", compiler.version}, {"digest", compiler.digest.hex()}});
  }
  const BundleHeader& header = verified.opened->bundle->header();
  const bool is_signed = header.signature && verified.opened->trust_status;
  return {{"builder", provenance.builder}, {"build_type", provenance.build_type}, {"source", provenance.source},
          {"commit", provenance.commit},   {"compilers", std::move(compilers)},   {"signed", is_signed}};
}

const char* change_name(BundleDiff::Kind kind) {
  return enum_name<BundleDiff::Kind::Changed>(kind, {"added", "removed", "changed"});
}

}  // namespace

std::string bundle_create_json(const WrittenBundle& written, const std::vector<Job>& jobs,
                               const std::vector<CompileOutcome>& outcomes,
                               const std::vector<ProfileMatch::Unmatched>& unmatched) {
  Json out = written_object(written);
  out["results"] = Json::array();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Json result{{"unit", jobs[i].unit.name()}};
    result.update(outcome_object(outcomes[i]));
    out["results"].push_back(std::move(result));
  }
  out["unmatched"] = unmatched_array(unmatched);
  return text_of(out);
}

std::string bundle_ls_json(const OpenBundle& open, const BundleDescription& description) {
  Json out = header_object(open.path, open.bundle->header());
  add_trust(out, open.trust_status);
  out["generator"] = description.generator;
  out["artifacts"] = Json::array();
  for (const auto& artifact : description.artifacts) out["artifacts"].push_back(artifact_object(artifact));
  return text_of(out);
}

std::string bundle_verify_json(const std::vector<VerifiedBundle>& all) {
  Json bundles = Json::array();
  for (const VerifiedBundle& verified : all) {
    Json object{{"path", verified.path}};
    if (verified.opened) object = header_object(verified.path, verified.opened->bundle->header());
    object["intact"] = verified.intact ? Json(verified.intact->ok()) : Json();
    if (verified.opened) add_trust(object, verified.opened->trust_status);
    if (verified.intact && !*verified.intact) object["error"] = error_object(verified.intact->error());
    if (verified.provenance) object["provenance"] = provenance_object(verified);
    bundles.push_back(std::move(object));
  }
  return text_of({{"bundles", std::move(bundles)}});
}

std::string bundle_artifact_json(const BundleDescription::Artifact& artifact, const std::string& output) {
  Json out = artifact_object(artifact);
  out["output"] = output;
  return text_of(out);
}

std::string bundle_diff_json(const OpenBundle& then, const OpenBundle& now, const BundleDiff& diff) {
  Json items = Json::array();
  for (const BundleDiff::Item& item : diff.items) {
    Json object{{"change", change_name(item.kind)}, {"unit", item.unit}, {"target", item.target}};
    if (item.kind == BundleDiff::Kind::Changed) {
      object["reason"] = item.reason;
      object["same_bytes"] = item.same_bytes;
    }
    items.push_back(std::move(object));
  }
  return text_of({{"before", header_object(then.path, then.bundle->header())},
                  {"after", header_object(now.path, now.bundle->header())},
                  {"equal", diff.equal()},
                  {"same", diff.same},
                  {"differences", std::move(items)}});
}

std::string bundle_merge_json(const WrittenBundle& written, const std::vector<Shadowed>& shadowed) {
  Json out = written_object(written);
  out["shadowed"] = Json::array();
  for (const Shadowed& each : shadowed) {
    out["shadowed"].push_back(
        {{"path", each.path}, {"unit", each.unit}, {"target", each.target}, {"key", each.key.hex()}});
  }
  return text_of(out);
}

std::string bundle_oci_json(const OpenBundle& open, const std::string& directory, const std::string& reference,
                            std::size_t layers) {
  Json out = header_object(open.path, open.bundle->header());
  out["layout"] = directory;
  out["reference"] = reference;
  out["layers"] = layers;
  return text_of(out);
}

std::string bundle_header_json(const std::string& output, bool written) {
  return text_of({{"output", output}, {"written", written}});
}

std::string explain_profile_json(const Profile& profile, const std::vector<ProfileResult>& answers) {
  Json results = Json::array();
  for (const ProfileResult& answer : answers) {
    Json object = asked_object(answer.asked);
    object["served"] = answer.made.has_value();
    object["bundle"] = answer.made ? Json(answer.bundle) : Json();
    object["built_for"] = answer.made ? Json(answer.made->name()) : Json();
    object["text"] = answer.text;
    results.push_back(std::move(object));
  }
  const auto missing = std::count_if(answers.begin(), answers.end(), [](const auto& answer) { return !answer.made; });
  return text_of({{"requested", answers.size()},
                  {"missing", missing},
                  {"skipped_lines", profile.skipped_lines},
                  {"results", std::move(results)}});
}

}  // namespace kiln::cli
