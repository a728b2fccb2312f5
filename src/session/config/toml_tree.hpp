// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

struct TomlField;

/// A value of a TOML file with its position, independent of the library that parsed it. Nested at most 256 deep.
struct TomlValue {
  enum class Kind : unsigned char { Text, Integer, Boolean, Fraction, Date, Array, Table };

  Kind kind = Kind::Table;
  std::string text;          ///< Text
  std::int64_t integer = 0;  ///< Integer
  bool boolean = false;      ///< Boolean
  std::vector<TomlValue> items;
  std::vector<TomlField> fields;  ///< members of a table, by name
  // 1-based. For a member of a table, the position of its name.
  unsigned line = 0;
  unsigned column = 0;

  /// Returns a member of a table, or null if it has none of that name.
  const TomlValue* find(std::string_view name) const;
};

struct TomlField {
  std::string name;
  TomlValue value;
};

/// Returns the kind of a value for messages: "a number".
const char* to_string(TomlValue::Kind kind);

/// Parses a TOML file and returns its root table. Code::InvalidArgument begins with the line and the column. Accepts
/// arbitrary bytes.
Result<TomlValue> parse_toml(std::string_view text);

}  // namespace kiln
