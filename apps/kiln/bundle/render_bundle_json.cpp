// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/bundle/render_bundle_json.hpp"

#include <algorithm>

#include "apps/kiln/output/json_common.hpp"
#include "base/enum_names.hpp"

namespace kiln::cli {

static Json signer_value(const std::optional<KeyId>& signer) { return signer ? Json(signer->hex()) : Json(); }

static Json to_json(const OpenBundle& open) {
  const BundleHeader& header = open.bundle->header();
  return {{"path", open.path},
          {"namespace", header.name_space},
          {"epoch", header.epoch},
          {"signer", signer_value(signer_of(header))}};
}

static void add_trust(Json& object, const Status& trusted) {
  object["trusted"] = trusted.has_value();
  if (!trusted) object["reason"] = trusted.error().message;
}

static Json to_json(const WrittenBundle& written) {
  return {{"path", written.path},
          {"bytes", written.bytes},
          {"sha256", written.sha256},
          {"artifacts", written.artifacts},
          {"namespace", written.name_space},
          {"epoch", written.epoch},
          {"signer", signer_value(written.signer)}};
}

// Returns an artifact as in the bundle description, but with `entries` in the form that all other commands use.
static Json to_json(const BundleDescription::Artifact& artifact) {
  Json object = Json::parse(BundleDescription{{}, {artifact}}.encode())["artifacts"][0];
  object["entries"] = to_json(artifact.entries);
  return object;
}

static Json to_json(const BundleCompiler& compiler) {
  return {{"name", compiler.name}, {"version", compiler.version}, {"digest", compiler.digest.hex()}};
}

static Json provenance_of(const VerifiedBundle& verified) {
  const Provenance& provenance = *verified.provenance;
  Json compilers = Json::array();
  for (const BundleCompiler& compiler : verified.compilers) compilers.push_back(to_json(compiler));
  const BundleHeader& header = verified.opened->bundle->header();
  const bool is_signed = header.signature && verified.opened->trust_status;
  return {{"builder", provenance.builder}, {"build_type", provenance.build_type}, {"source", provenance.source},
          {"commit", provenance.commit},   {"compilers", std::move(compilers)},   {"signed", is_signed}};
}

static const char* change_name(BundleDiff::Kind kind) {
  return enum_name<BundleDiff::Kind::Changed>(kind, {"added", "removed", "changed"});
}

static Json to_json(const VerifiedBundle& verified) {
  Json object = verified.opened ? to_json(*verified.opened) : Json{{"path", verified.path}};
  object["intact"] = verified.intact ? Json(verified.intact->has_value()) : Json();
  if (verified.opened) add_trust(object, verified.opened->trust_status);
  if (verified.intact && !*verified.intact) object["error"] = to_json(verified.intact->error());
  if (verified.provenance) object["provenance"] = provenance_of(verified);
  return object;
}

static Json to_json(const BundleDiff::Item& item) {
  Json object{{"change", change_name(item.kind)}, {"unit", item.unit}, {"target", item.target}};
  if (item.kind == BundleDiff::Kind::Changed) {
    object["reason"] = item.reason;
    object["same_bytes"] = item.same_bytes;
  }
  return object;
}

static Json to_json(const Shadowed& shadowed) {
  return {{"path", shadowed.path}, {"unit", shadowed.unit}, {"target", shadowed.target}, {"key", shadowed.key.hex()}};
}

static Json to_json(const ProfileResult& answer) {
  Json object = to_json(answer.asked);
  object["served"] = answer.made.has_value();
  object["bundle"] = answer.made ? Json(answer.bundle) : Json();
  object["built_for"] = answer.made ? Json(answer.made->name()) : Json();
  object["text"] = answer.text;
  return object;
}

static Json to_json(const WrittenPart& part) {
  Json object{{"architecture", part.architecture}};
  object.update(to_json(part.bundle));
  if (part.layers > 0) object["layers"] = part.layers;
  return object;
}

static Json to_json(const PulledPart& part) {
  return {
      {"architecture", part.architecture}, {"image", part.image}, {"directory", part.directory}, {"bytes", part.bytes}};
}

std::string bundle_create_json(const WrittenBundle& written, const std::vector<Job>& jobs,
                               const std::vector<CompileOutcome>& outcomes,
                               const std::vector<ProfileMatch::Unmatched>& unmatched) {
  Json out = to_json(written);
  out["results"] = Json::array();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Json result{{"unit", jobs[i].unit.label()}};
    result.update(to_json(outcomes[i]));
    out["results"].push_back(std::move(result));
  }
  out["unmatched"] = json_array(unmatched);
  return text_of(out);
}

std::string bundle_ls_json(const OpenBundle& open, const BundleDescription& description) {
  Json out = to_json(open);
  add_trust(out, open.trust_status);
  out["generator"] = description.generator;
  out["artifacts"] = Json::array();
  for (const auto& artifact : description.artifacts) {
    Json object = to_json(artifact);
    if (const auto info = cccl_info(open, artifact)) object["cccl"] = to_json(*info);
    out["artifacts"].push_back(std::move(object));
  }
  return text_of(out);
}

std::string bundle_verify_json(const std::vector<VerifiedBundle>& all) {
  return text_of({{"bundles", json_array(all)}});
}

std::string bundle_artifact_json(const BundleDescription::Artifact& artifact, const std::string& output) {
  Json out = to_json(artifact);
  out["output"] = output;
  return text_of(out);
}

std::string bundle_diff_json(const OpenBundle& then, const OpenBundle& now, const BundleDiff& diff) {
  return text_of({{"before", to_json(then)},
                  {"after", to_json(now)},
                  {"equal", diff.equal()},
                  {"same", diff.same},
                  {"differences", json_array(diff.items)}});
}

std::string bundle_merge_json(const WrittenBundle& written, const std::vector<Shadowed>& shadowed) {
  Json out = to_json(written);
  out["shadowed"] = json_array(shadowed);
  return text_of(out);
}

std::string bundle_oci_json(const OpenBundle& open, const std::string& directory, const std::string& reference,
                            std::size_t layers) {
  Json out = to_json(open);
  out["layout"] = directory;
  out["reference"] = reference;
  out["layers"] = layers;
  return text_of(out);
}

std::string bundle_parts_json(const OpenBundle& open, const std::string& output,
                              const std::vector<WrittenPart>& parts) {
  Json out = to_json(open);
  out["output"] = output;
  out["parts"] = json_array(parts);
  return text_of(out);
}

std::string bundle_pull_json(const std::vector<PulledPart>& parts) { return text_of({{"parts", json_array(parts)}}); }

std::string bundle_header_json(const std::string& output, bool written) {
  return text_of({{"output", output}, {"written", written}});
}

std::string explain_profile_json(const Profile& profile, const std::vector<ProfileResult>& answers) {
  const auto missing = std::count_if(answers.begin(), answers.end(), [](const auto& answer) { return !answer.made; });
  return text_of({{"requested", answers.size()},
                  {"missing", missing},
                  {"skipped_lines", profile.skipped_lines},
                  {"results", json_array(answers)}});
}

}  // namespace kiln::cli
