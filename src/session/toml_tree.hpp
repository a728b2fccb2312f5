#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

struct TomlField;

/// A value of a TOML file with its place, apart from the library that read it. Nested at most 256 deep.
struct TomlValue {
  enum class Kind : unsigned char { Text, Integer, Boolean, Fraction, Date, Array, Table };

  Kind kind = Kind::Table;
  std::string text;          ///< Text
  std::int64_t integer = 0;  ///< Integer
  bool boolean = false;      ///< Boolean
  std::vector<TomlValue> items;
  std::vector<TomlField> fields;  ///< of a table, by name
  // Counted from one; of a table's member, where its name stands.
  unsigned line = 0;
  unsigned column = 0;

  /// A table's member; null where it has none of that name.
  const TomlValue* find(std::string_view name) const;
};

struct TomlField {
  std::string name;
  TomlValue value;
};

/// What a value is, for messages: "a number".
const char* to_string(TomlValue::Kind kind);

/// The table that a TOML file is. Code::InvalidArgument begins with the line and the column. Any bytes may be given.
Result<TomlValue> parse_toml(std::string_view text);

}  // namespace kiln
