// The only source that includes toml++, which takes seconds to compile.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include "session/config_file.hpp"

#include <toml++/toml.h>

#include <utility>

#include "base/error.hpp"

namespace kiln {
namespace {

std::string text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
  // Dates and fractions are the value of no setting: the setting's own check refuses this text and says what it wants.
  return node.is_floating_point() ? "a fraction" : node.is_table() || node.is_array() ? "a nested value" : "a date";
}

// toml++ itself refuses deeper nesting than 256, so the recursion is bounded.
void flatten(const toml::table& table, const std::string& prefix, std::vector<FileSetting>& out) {
  for (const auto& [key, node] : table) {
    std::string name = prefix + std::string(key.str());
    if (const auto* nested = node.as_table()) {
      flatten(*nested, name + '.', out);
      continue;
    }
    FileSetting setting{std::move(name), {}, static_cast<unsigned>(key.source().begin.line)};
    if (const auto* members = node.as_array()) {
      for (const toml::node& member : *members) setting.values.push_back(text_of(member));
    } else {
      setting.values.push_back(text_of(node));
    }
    out.push_back(std::move(setting));
  }
}

}  // namespace

Result<std::vector<FileSetting>> parse_config(std::string_view text) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return failure(Code::InvalidArgument,
                   "line " + std::to_string(error.source().begin.line) + ": " + std::string(error.description()));
  }
  std::vector<FileSetting> settings;
  flatten(parsed.table(), {}, settings);
  return settings;
}

}  // namespace kiln
