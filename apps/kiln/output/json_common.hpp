// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/cccl.hpp>

#include "apps/kiln/compile/profile_match.hpp"
#include "apps/kiln/output/render_json.hpp"
#include "base/json.hpp"

// Each type has one function `to_json`: here if several commands use the type, otherwise in the source of its command.
namespace kiln::cli {

/// Version of the JSON of all commands. It changes if a field is renamed, removed or gets another meaning.
inline constexpr int kSchemaVersion = 1;

/// Returns the JSON of a command, which starts with the schema version; one line if `indent` is -1.
inline std::string text_of(const Json& json, int indent = 2) {
  Json document{{"schema_version", kSchemaVersion}};
  document.update(json);
  return json_text(document, indent);
}

inline double rounded(double ms) { return std::round(ms * 1000) / 1000; }

inline double seconds(std::chrono::nanoseconds moment) { return std::chrono::duration<double>(moment).count(); }

inline Json to_json(const std::vector<EntryPoint>& entries) {
  // Do not use operator[], which compares each name with all previous ones: an untrusted description can have 100,000.
  std::set<std::string_view> names;
  Json::object_t object;
  for (const EntryPoint& entry : entries) {
    if (names.insert(entry.name).second) object.push_back({entry.name, entry.symbol});
  }
  return object;
}

inline Json to_json(const cccl::ArtifactInfo& info) {
  return {{"release", info.release},
          {"capability", info.capability},
          {"policy_bytes", info.policy_bytes},
          {"kernels", info.kernels}};
}

inline Json to_json(const Error& error) {
  Json object{{"code", to_string(error.code)}, {"message", error.message}};
  if (!error.log.empty()) object["log"] = error.log;
  return object;
}

inline Json to_json(const CompileOutcome& outcome) {
  if (!outcome.answer) {
    Json error{{"file", outcome.file}, {"target", outcome.target}};
    error.update(to_json(outcome.answer.error()));
    return error;
  }
  const ResolvedArtifact& answer = *outcome.answer;
  Json result{{"target", outcome.target},
              {"key", answer.key.hex()},
              {"origin", to_string(answer.origin)},
              {"bytes", answer.artifact.bytes.size()},
              {"ms", rounded(answer.ms)},
              {"entries", to_json(answer.artifact.entries)},
              {"file", outcome.file},
              {"form", to_string(answer.artifact.target.form)}};
  // An artifact from a bundle may have been built for another, compatible target.
  if (answer.origin == Origin::Bundle) result["built_for"] = answer.artifact.target.name();
  if (!outcome.output.empty()) result["output"] = outcome.output;
  return result;
}

/// Returns {"results": […]}, and "errors" if there are any.
inline Json to_json(const std::vector<CompileOutcome>& outcomes) {
  Json out{{"results", Json::array()}};
  for (const CompileOutcome& outcome : outcomes) out[outcome.answer ? "results" : "errors"].push_back(to_json(outcome));
  return out;
}

inline Json to_json(const ProfileEntry& asked) {
  return {{"unit", asked.unit}, {"kind", asked.kind}, {"target", asked.target.name()}, {"key", asked.key.hex()}};
}

inline Json to_json(const ProfileMatch::Unmatched& unmatched) {
  Json object = to_json(unmatched.asked);
  object["reason"] = unmatched.reason;
  return object;
}

/// Returns an array of the items. Their `to_json` must be declared above, or they must be types of this namespace.
template <class T>
Json json_array(const std::vector<T>& items) {
  Json array = Json::array();
  for (const T& item : items) array.push_back(to_json(item));
  return array;
}

}  // namespace kiln::cli
