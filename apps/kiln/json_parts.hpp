#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "apps/kiln/profile_match.hpp"
#include "apps/kiln/render_json.hpp"
#include "base/json.hpp"

// What the JSON of several commands has in common.
namespace kiln::cli {

inline std::string text_of(const Json& json) { return json_text(json, 2); }

inline double rounded(double ms) { return std::round(ms * 1000) / 1000; }

inline Json entries_object(const std::vector<Entry>& entries) {
  Json object = Json::object();
  for (const Entry& entry : entries) object[entry.name] = entry.symbol;
  return object;
}

inline Json error_object(const Error& error) {
  Json object{{"code", to_string(error.code)}, {"message", error.message}};
  if (!error.log.empty()) object["log"] = error.log;
  return object;
}

/// Of an outcome that is an answer.
inline Json outcome_object(const CompileOutcome& outcome) {
  const Answer& answer = *outcome.answer;
  Json result{{"target", outcome.target},
              {"key", answer.key.hex()},
              {"origin", to_string(answer.origin)},
              {"bytes", answer.artifact.bytes.size()},
              {"ms", rounded(answer.ms)},
              {"entries", entries_object(answer.artifact.entries)},
              {"file", outcome.file},
              {"form", to_string(answer.artifact.target.form)}};
  // What a bundle serves may have been made for another target, of which this is one that runs it.
  if (answer.origin == Origin::Bundle) result["made_for"] = answer.artifact.target.name();
  if (!outcome.output.empty()) result["output"] = outcome.output;
  return result;
}

inline Json asked_object(const Asked& asked) {
  return {{"unit", asked.unit}, {"kind", asked.kind}, {"target", asked.target.name()}, {"key", asked.key.hex()}};
}

inline Json unmatched_array(const std::vector<ProfileMatch::Unmatched>& unmatched) {
  Json all = Json::array();
  for (const auto& [asked, why] : unmatched) {
    Json object = asked_object(asked);
    object["why"] = why;
    all.push_back(std::move(object));
  }
  return all;
}

/// {"results": […]}, and "errors" where there are any.
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
