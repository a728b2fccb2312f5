// SPDX-License-Identifier: Apache-2.0
#include "apps/json_schema.hpp"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

namespace kiln::test {
namespace {

using Json = nlohmann::json;

bool has_type(const Json& document, const std::string& type) {
  if (type == "integer") return document.is_number_integer();
  if (type == "number") return document.is_number();
  if (type == "boolean") return document.is_boolean();
  return type == document.type_name();
}

bool has_one_type(const Json& document, const Json& types) {
  if (types.is_string()) return has_type(document, types);
  return std::any_of(types.begin(), types.end(), [&](const Json& type) { return has_type(document, type); });
}

std::string object_problem(const Json& schema, const Json& document, const std::string& place) {
  for (const Json& name : schema.value("required", Json::array())) {
    if (!document.contains(name)) return place + " has no '" + name.get<std::string>() + "'";
  }
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, value] : document.items()) {
    const Json* rule = properties.contains(name)                 ? &properties[name]
                       : schema.contains("additionalProperties") ? &schema["additionalProperties"]
                                                                 : nullptr;
    if (rule == nullptr) continue;
    if (std::string problem = schema_problem(*rule, value, place + '.' + name); !problem.empty()) return problem;
  }
  return {};
}

std::string any_of_problem(const Json& rules, const Json& document, const std::string& place) {
  std::string problems;
  for (const Json& rule : rules) {
    const std::string problem = schema_problem(rule, document, place);
    if (problem.empty()) return {};
    problems += (problems.empty() ? "" : "; or ") + problem;
  }
  return problems;
}

}  // namespace

std::string schema_problem(const Json& schema, const Json& document, const std::string& place) {
  static const std::set<std::string> kKnown = {"$schema",  "$id",   "title",      "description",          "type",
                                               "required", "items", "properties", "additionalProperties", "anyOf",
                                               "enum",     "const", "pattern"};
  for (const auto& [keyword, value] : schema.items()) {
    if (!kKnown.contains(keyword)) return place + ": this checker does not know the keyword " + keyword;
  }
  if (schema.contains("const") && document != schema["const"]) return place + " is not " + schema["const"].dump();
  if (schema.contains("enum")) {
    const Json& values = schema["enum"];
    if (std::find(values.begin(), values.end(), document) == values.end()) {
      return place + " is " + document.dump() + ", not one of " + values.dump();
    }
  }
  if (schema.contains("type") && !has_one_type(document, schema["type"])) {
    return place + " is a " + document.type_name() + ", not " + schema["type"].dump();
  }
  if (schema.contains("pattern") && document.is_string() &&
      !std::regex_search(document.get<std::string>(), std::regex(schema["pattern"].get<std::string>()))) {
    return place + " does not match " + schema["pattern"].dump();
  }
  if (schema.contains("anyOf")) {
    if (std::string problem = any_of_problem(schema["anyOf"], document, place); !problem.empty()) return problem;
  }
  if (schema.contains("items") && document.is_array()) {
    for (std::size_t i = 0; i < document.size(); ++i) {
      std::string problem = schema_problem(schema["items"], document[i], place + '[' + std::to_string(i) + ']');
      if (!problem.empty()) return problem;
    }
  }
  return document.is_object() ? object_problem(schema, document, place) : std::string();
}

std::string schema_file(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  for (const std::string& argument : arguments) {
    if (argument.starts_with('-') || words.size() == 2) break;
    words.push_back(argument);
  }
  for (; !words.empty(); words.pop_back()) {
    std::string file = KILN_SOURCE_DIR "/apps/kiln/schemas/" + words[0];
    if (words.size() == 2) file += '-' + words[1];
    if (words.back().find('/') == std::string::npos && std::filesystem::exists(file + ".json")) return file + ".json";
  }
  return {};
}

}  // namespace kiln::test
