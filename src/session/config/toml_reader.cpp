#include "session/config/toml_reader.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "session/config/settings.hpp"

namespace kiln {
namespace {

using Kind = TomlValue::Kind;

bool is_usable_text(const TomlValue& value) {
  return value.kind == Kind::Text && !value.text.empty() && value.text.find('\0') == std::string::npos;
}

}  // namespace

void TomlReader::fail(const TomlValue& at, const std::string& what) {
  if (error_) return;
  error_ = make_error(Code::InvalidArgument,
                      "line " + std::to_string(at.line) + ", column " + std::to_string(at.column) + ": " + what);
}

void TomlReader::check_keys(const TomlValue& table, std::initializer_list<std::string_view> names) {
  for (const auto& [name, value] : table.fields) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string meant = suggest_name(name, names);
    fail(value, "unknown key '" + name + "'" + (meant.empty() ? "" : "; did you mean '" + meant + "'?"));
  }
}

std::string TomlReader::text(const TomlValue& table, std::string_view name) {
  const TomlValue* const value = table.find(name);
  if (value == nullptr) return {};
  if (!is_usable_text(*value)) fail(*value, "'" + std::string(name) + "' must be a non-empty string");
  return value->text;
}

std::vector<std::string> TomlReader::texts(const TomlValue& table, std::string_view name) {
  const TomlValue* const value = table.find(name);
  if (value == nullptr) return {};
  if (value->kind != Kind::Array) fail(*value, "'" + std::string(name) + "' must be an array of strings");
  std::vector<std::string> all;
  for (const TomlValue& item : value->items) {
    if (!is_usable_text(item)) fail(item, "'" + std::string(name) + "' must be an array of non-empty strings");
    all.push_back(item.text);
  }
  return all;
}

void TomlReader::tables(const TomlValue& file, std::string_view name,
                        const std::function<void(const TomlValue&)>& each) {
  const TomlValue* const list = file.find(name);
  if (list == nullptr) return;
  const std::string heading = "[[" + std::string(name) + "]]";
  if (list->kind != Kind::Array) return fail(*list, "'" + std::string(name) + "' must be a list of tables: " + heading);
  for (const TomlValue& item : list->items) {
    if (error_) return;
    if (item.kind != Kind::Table) return fail(item, "'" + std::string(name) + "' must be a list of tables: " + heading);
    each(item);
  }
}

}  // namespace kiln
