// SPDX-License-Identifier: Apache-2.0
#include "session/config/member_reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "base/files/owned_file.hpp"
#include "base/text.hpp"
#include "base/visible_text.hpp"
#include "trust/statement.hpp"

namespace kiln {
namespace {

using Form = Format::Form;
using Kind = TomlValue::Kind;

constexpr std::uint64_t kMaxProtectedSize = 1 << 20;

// Converts a path to an absolute one once, so that a program that changes its working directory later does not move its
// cache.
std::string absolute(const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  char here[4096];
  if (getcwd(here, sizeof here) == nullptr) return path;
  return join_path(here, path);
}

// Expands $ORIGIN as the dynamic loader does: a program and its bundle can be moved together.
std::string with_origin(const std::string& path) {
  constexpr std::string_view kOrigin = "$ORIGIN";
  if (path != kOrigin && !path.starts_with(std::string(kOrigin) + "/")) return absolute(path);
  char program[4096];
  const ssize_t size = readlink("/proc/self/exe", program, sizeof program);
  if (size <= 0) return path;
  return parent_path(std::string(program, static_cast<std::size_t>(size))) + path.substr(kOrigin.size());
}

// Each overload of `parse` stores the value of a text and returns whether it is valid.
bool parse(const std::string& text, const Format& format, bool& out) {
  if (format.form == Form::Choice) {
    out = text == format.words[1];
    return out || text == format.words[0];
  }
  const std::optional<bool> value = parse_boolean(text);
  if (value) out = *value;
  return value.has_value();
}

bool parse(const std::string& text, const Format& format, std::uint64_t& out) {
  if (format.form == Form::Size) {
    const Result<std::uint64_t> size = parse_size(text);
    if (size) out = *size;
    return size.has_value();
  }
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end && out >= format.least && out <= format.most;
}

bool parse(const std::string& text, const Format& format, std::string& out) {
  out = text;
  const auto is_word = [&](std::string_view word) {
    return text == word || (word.ends_with("://") && text.starts_with(word));
  };
  switch (format.form) {
    case Form::Plain:
    case Form::Size: break;
    case Form::Path: out = absolute(text); break;
    case Form::BundlePath: out = with_origin(text); break;
    case Form::Choice: return is_word(format.words[0]) || is_word(format.words[1]);
    case Form::Location:
      return text.empty() || text.front() == '/' ||
             std::any_of(std::begin(format.words), std::end(format.words), is_word);
    case Form::Namespace: return text.empty() || is_name_space(text);
  }
  return true;
}

/// For numbers of other types, and for durations.
template <class Number>
bool parse(const std::string& text, const Format& format, Number& out) {
  std::uint64_t number = 0;
  const bool valid = parse(text, format, number);
  out = Number(number);
  return valid;
}

template <class T>
bool parse(const std::string& text, const Format& format, std::optional<T>& out) {
  return text == "auto" || parse(text, format, out.emplace());
}

// A text is never a table.
bool parse(const std::string& /*text*/, const Format& /*format*/, const TomlValue*& /*out*/) { return false; }

// Each overload of `read_parts` stores the values of a text that is split into parts, and returns whether they are
// valid.
template <class T>
bool read_parts(const std::vector<std::string_view>& parts, const Format& format, T& place) {
  T value{};
  const bool valid = parse(std::string(parts.front()), format, value);
  if (valid) place = std::move(value);
  return valid;
}

template <class T>
bool read_parts(const std::vector<std::string_view>& parts, const Format& format, std::vector<T>& place) {
  std::vector<T> values;
  for (const std::string_view part : parts) {
    if (!part.empty() && !parse(std::string(part), format, values.emplace_back())) return false;
  }
  place = std::move(values);
  return true;
}

// Each overload of `read_value` stores a TOML value. Returns the invalid value, which can be an element of an array, or
// null.
template <class T>
const TomlValue* read_value(const TomlValue& value, const Format& format, T& place) {
  constexpr Kind kind = std::is_same_v<T, bool>          ? Kind::Boolean
                        : std::is_same_v<T, std::string> ? Kind::Text
                                                         : Kind::Integer;
  const bool empty = kind == Kind::Text && (value.text.empty() || value.text.find('\0') != std::string::npos);
  if (value.kind != kind || empty || !read_parts({text_of(value)}, format, place)) return &value;
  return nullptr;
}

const TomlValue* read_value(const TomlValue& value, const Format& /*format*/, const TomlValue*& place) {
  if (value.kind != Kind::Table) return &value;
  place = &value;
  return nullptr;
}

template <class T>
const TomlValue* read_value(const TomlValue& value, const Format& format, std::vector<T>& place) {
  if (value.kind != Kind::Array) return &value;
  std::vector<T> values(value.items.size());
  for (std::size_t i = 0; i != values.size(); ++i) {
    if (const TomlValue* const invalid = read_value(value.items[i], format, values[i])) return invalid;
  }
  place = std::move(values);
  return nullptr;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

Status read_text(const std::string& text, const Format& format, const Slot& slot) {
  std::vector<std::string_view> parts = {text};
  if (format.separator != 0) parts = split(text, format.separator);
  if (std::visit([&](auto* place) { return read_parts(parts, format, *place); }, slot)) return {};
  return make_error(Code::InvalidArgument,
                    invalid_value(format.form == Format::Form::Location ? visible_url(text) : text, format.valid));
}

void TableReader::read(const TomlValue& table, std::initializer_list<Member> members) {
  std::vector<std::string_view> names;
  for (const Member& member : members) names.push_back(member.name);
  for (const auto& [name, value] : table.fields) {
    if (std::find(names.begin(), names.end(), name) == names.end()) fail(value, unknown_name("key", name, names, "'"));
  }
  for (const Member& member : members) {
    const TomlValue* const value = table.find(member.name);
    if (value != nullptr) {
      read_member(*value, member);
    } else if (member.required != nullptr) {
      fail(table, "'" + std::string(member.name) + "' is missing; " + member.required);
    }
  }
}

void TableReader::read_member(const TomlValue& value, const Member& member) {
  const TomlValue* const invalid =
      std::visit([&](auto* place) { return read_value(value, member.format, *place); }, member.slot);
  if (invalid != nullptr) fail(*invalid, "'" + std::string(member.name) + "' must be " + member.format.valid);
}

void TableReader::fail(const TomlValue& at, const std::string& what) {
  if (error_) return;
  error_ = make_error(Code::InvalidArgument,
                      "line " + std::to_string(at.line) + ", column " + std::to_string(at.column) + ": " + what);
}

std::string text_of(const TomlValue& value) {
  switch (value.kind) {
    case Kind::Text: return value.text;
    case Kind::Integer: return std::to_string(value.integer);
    case Kind::Boolean: return value.boolean ? "true" : "false";
    case Kind::Array:
    case Kind::Table: return "a nested value";
    // No setting has such a value: the setting's own check rejects this text and names the valid values.
    case Kind::Fraction:
    case Kind::Date: break;
  }
  return to_string(value.kind);
}

Result<std::optional<Bytes>> read_protected_file(const std::string& path) {
  const Result<OwnedFile> file = open_owned_file(path, FileUse::Obeyed);
  if (!file && file.error().code == Code::Unavailable) return std::optional<Bytes>();
  if (!file) return file.error();
  if (file->size > kMaxProtectedSize) return make_error(Code::Denied, "the file is larger than 1 MiB");
  Result<Bytes> text = read_all(file->fd.get(), file->size, path);
  if (!text) return std::move(text).error();
  return std::optional<Bytes>(std::move(*text));
}

std::string suggest_name(std::string_view name, const std::vector<std::string_view>& candidates) {
  if (name.size() > 64) return {};  // a typing error leaves a short name short
  std::string_view best;
  // Up to a third of the name can differ; beyond that it is another name.
  std::size_t minimum = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < minimum) {
      minimum = distance;
      best = candidate;
    }
  }
  return std::string(best);
}

std::string unknown_name(std::string_view kind, std::string_view name, const std::vector<std::string_view>& candidates,
                         std::string_view quote) {
  const auto quoted = [&](std::string_view text) { return std::string(quote).append(text).append(quote); };
  const std::string meant = suggest_name(name, candidates);
  return "unknown " + std::string(kind) + ' ' + quoted(name) +
         (meant.empty() ? "; remove it or correct its name" : "; did you mean " + quoted(meant) + '?');
}

}  // namespace kiln
