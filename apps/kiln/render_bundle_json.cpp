#include "apps/kiln/render_bundle_json.hpp"

#include <algorithm>

#include "apps/kiln/json_parts.hpp"
#include "base/named.hpp"

namespace kiln::cli {
namespace {

Json signer_value(const std::optional<KeyId>& signer) { return signer ? Json(signer->hex()) : Json(); }

Json header_object(const std::string& path, const BundleHeader& header) {
  return {{"path", path},
          {"namespace", header.name_space},
          {"epoch", header.epoch},
          {"signer", signer_value(signer_of(header))}};
}

void add_belief(Json& object, const Status& believed) {
  object["believed"] = believed.ok();
  if (!believed) object["why_not"] = believed.error().message;
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

// As the bundle itself has it, except that entries look as in the JSON of every other command.
Json artifact_object(const BundleDescription::Artifact& artifact) {
  Json object = Json::parse(BundleDescription{{}, {artifact}}.encode())["artifacts"][0];
  object["entries"] = entries_object(artifact.entries);
  return object;
}

const char* change_name(BundleDiff::Kind kind) {
  return name_of<BundleDiff::Kind::Changed>(kind, {"added", "removed", "changed"});
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
  add_belief(out, open.believed);
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
    object["whole"] = verified.whole.ok();
    if (verified.opened) add_belief(object, verified.opened->believed);
    if (!verified.whole) object["error"] = error_object(verified.whole.error());
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
      object["why"] = item.why;
      object["same_bytes"] = item.same_bytes;
    }
    items.push_back(std::move(object));
  }
  return text_of({{"then", header_object(then.path, then.bundle->header())},
                  {"now", header_object(now.path, now.bundle->header())},
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

std::string bundle_layout_json(const OpenBundle& open, const std::string& folder, const std::string& reference,
                               std::size_t layers) {
  Json out = header_object(open.path, open.bundle->header());
  out["layout"] = folder;
  out["reference"] = reference;
  out["layers"] = layers;
  return text_of(out);
}

std::string bundle_units_json(const std::string& output, bool written) {
  return text_of({{"output", output}, {"written", written}});
}

std::string explain_profile_json(const Profile& profile, const std::vector<ProfileAnswer>& answers) {
  Json results = Json::array();
  for (const ProfileAnswer& answer : answers) {
    Json object = asked_object(answer.asked);
    object["served"] = answer.made.has_value();
    object["bundle"] = answer.made ? Json(answer.bundle) : Json();
    object["made_for"] = answer.made ? Json(answer.made->name()) : Json();
    object["text"] = answer.text;
    results.push_back(std::move(object));
  }
  const auto lacking = std::count_if(answers.begin(), answers.end(), [](const auto& answer) { return !answer.made; });
  return text_of({{"asked", answers.size()},
                  {"lacking", lacking},
                  {"not_understood", profile.not_understood},
                  {"results", std::move(results)}});
}

}  // namespace kiln::cli
