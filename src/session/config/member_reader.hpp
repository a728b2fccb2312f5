// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <kiln/bytes.hpp>
#include <kiln/result.hpp>

#include "base/text.hpp"
#include "session/config/toml_tree.hpp"

namespace kiln {

/// Describes which texts are valid values of a member, in addition to its type.
struct Format {
  enum class Form : unsigned char {
    Plain,       ///< any value of the type
    Choice,      ///< words[0], which means false, or words[1]
    Size,        ///< see parse_size() of base/text.hpp
    Path,        ///< a path, stored as an absolute one
    BundlePath,  ///< a path that can start with $ORIGIN, the directory of the program
    Location,    ///< an absolute path, one of `words`, or a URL if a word is its scheme; or empty
    Namespace,   ///< the name of a namespace; or empty
  };

  Form form = Form::Plain;
  const char* valid = "";  ///< describes the valid values in messages
  char separator = 0;      ///< separates the values of a list that is one text; 0 if the text is one value
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const char* words[3] = {"", "", ""};
};

constexpr Format kTextFormat = {.valid = "a non-empty string"};
constexpr Format kTextListFormat = {.valid = "an array of non-empty strings"};
constexpr Format kSizeFormat = {.form = Format::Form::Size, .valid = kSizeValues};

/// The variable in which a value is stored. Its type is the type of the value; an optional accepts `auto`, too, which
/// is stored as no value.
using Slot = std::variant<bool*, std::optional<bool>*, std::uint64_t*, std::optional<unsigned>*, std::chrono::seconds*,
                          std::chrono::milliseconds*, std::string*, std::vector<std::string>*, std::vector<unsigned>*,
                          const TomlValue**, std::vector<const TomlValue*>*>;

/// Stores the value of a text, such as that of an environment variable. An error names the valid values and leaves the
/// slot unchanged.
Status read_text(const std::string& text, const Format& format, const Slot& slot);

/// Describes a member of a TOML table: its name, its valid values and where its value is stored.
struct Member {
  std::string_view name;
  Slot slot;
  Format format;
  const char* required = nullptr;  ///< next step if the table lacks the member; null if the member is optional
};

/// A base class for readers of TOML files with fixed members. A reader continues after the first error, which is stored
/// here with its line and column. Not thread-safe.
class TableReader {
 protected:
  /// Stores the members of a table. Reports unknown members, missing ones and invalid values.
  void read(const TomlValue& table, std::initializer_list<Member> members);
  void read_member(const TomlValue& value, const Member& member);

  void fail(const TomlValue& at, const std::string& what);
  const std::optional<Error>& error() const { return error_; }

 private:
  std::optional<Error> error_;
};

/// Returns the text of a TOML value that is neither an array nor a table, as read_text() reads it.
std::string text_of(const TomlValue& value);

/// Reads a file that controls which programs kiln starts and which keys it trusts: a regular file of at most 1 MiB that
/// only this user or root can have created or written (base/owned_file.hpp). Returns no value if the file does not
/// exist, and an error with the reason and the next step if it is rejected.
Result<std::optional<Bytes>> read_protected_file(const std::string& path);

/// Returns the candidate that the author of `name` probably meant, or an empty string if none is similar.
std::string suggest_name(std::string_view name, const std::vector<std::string_view>& candidates);
/// Returns "unknown <kind> <name>" and the next step. `quote` is written around names.
std::string unknown_name(std::string_view kind, std::string_view name, const std::vector<std::string_view>& candidates,
                         std::string_view quote);

}  // namespace kiln
