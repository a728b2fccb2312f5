#pragma once

#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apps/kiln/compile/profile_match.hpp"
#include "apps/kiln/output/render_json.hpp"
#include "base/json.hpp"

// JSON objects that several commands share.
namespace kiln::cli {

inline std::string text_of(const Json& json) { return json_text(json, 2); }

inline double rounded(double ms) { return std::round(ms * 1000) / 1000; }

inline Json entries_object(const std::vector<EntryPoint>& entries) {
  // Do not use operator[], which compares each name with all previous ones: an untrusted description can have 100,000.
  std::set<std::string_view> names;
  Json::object_t object;
  for (const EntryPoint& entry : entries) {
    if (names.insert(entry.name).second) object.push_back({entry.name, entry.symbol});
  }
  return object;
}

inline Json error_object(const Error& error) {
  Json object{{"code", to_string(error.code)}, {"message", error.message}};
  if (!error.log.empty()) object["log"] = error.log;
  return object;
}

/// Returns the object of a successful outcome.
inline Json outcome_object(const CompileOutcome& outcome) {
  const ResolveResult& answer = *outcome.answer;
  Json result{{"target", outcome.target},
              {"key", answer.key.hex()},
              {"origin", to_string(answer.origin)},
              {"bytes", answer.artifact.bytes.size()},
              {"ms", rounded(answer.ms)},
              {"entries", entries_object(answer.artifact.entries)},
              {"file", outcome.file},
              {"form", to_string(answer.artifact.target.form)}};
  // An artifact from a bundle may have been built for another, compatible target.
  if (answer.origin == Origin::Bundle) result["built_for"] = answer.artifact.target.name();
  if (!outcome.output.empty()) result["output"] = outcome.output;
  return result;
}

inline Json asked_object(const ProfileEntry& asked) {
  return {{"unit", asked.unit}, {"kind", asked.kind}, {"target", asked.target.name()}, {"key", asked.key.hex()}};
}

inline Json unmatched_array(const std::vector<ProfileMatch::Unmatched>& unmatched) {
  Json all = Json::array();
  for (const auto& [asked, reason] : unmatched) {
    Json object = asked_object(asked);
    object["reason"] = reason;
    all.push_back(std::move(object));
  }
  return all;
}

/// Returns {"results": […]}, and "errors" if there are any.
inline Json outcomes_object(const std::vector<CompileOutcome>& outcomes) {
  Json out{{"results", Json::array()}};
  for (const CompileOutcome& outcome : outcomes) {
    if (outcome.answer) {
      out["results"].push_back(outcome_object(outcome));
      continue;
    }
    Json error{{"file", outcome.file}, {"target", outcome.target}};
    error.update(error_object(outcome.answer.error()));
    out["errors"].push_back(std::move(error));
  }
  return out;
}

}  // namespace kiln::cli
