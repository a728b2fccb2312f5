#include "session/config/config_file.hpp"

#include <utility>

#include "session/config/toml_tree.hpp"

namespace kiln {
namespace {

std::string text_of(const TomlValue& value) {
  switch (value.kind) {
    case TomlValue::Kind::Text: return value.text;
    case TomlValue::Kind::Integer: return std::to_string(value.integer);
    case TomlValue::Kind::Boolean: return value.boolean ? "true" : "false";
    case TomlValue::Kind::Array:
    case TomlValue::Kind::Table: return "a nested value";
    // No setting has such a value: the setting's own check rejects this text and names the valid values.
    case TomlValue::Kind::Fraction:
    case TomlValue::Kind::Date: break;
  }
  return to_string(value.kind);
}

void flatten(const TomlValue& table, const std::string& prefix, std::vector<FileSetting>& out) {
  for (const auto& [key, value] : table.fields) {
    std::string name = prefix + key;
    if (value.kind == TomlValue::Kind::Table) {
      flatten(value, name + '.', out);
      continue;
    }
    FileSetting setting{std::move(name), {}, value.line};
    if (value.kind == TomlValue::Kind::Array) {
      for (const TomlValue& member : value.items) setting.values.push_back(text_of(member));
    } else {
      setting.values.push_back(text_of(value));
    }
    out.push_back(std::move(setting));
  }
}

}  // namespace

Result<std::vector<FileSetting>> parse_config(std::string_view text) {
  const Result<TomlValue> table = parse_toml(text);
  if (!table) return table.error();
  std::vector<FileSetting> settings;
  flatten(*table, {}, settings);
  return settings;
}

}  // namespace kiln
