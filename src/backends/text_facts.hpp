// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/recipe.hpp"

namespace kiln {

/// Properties of a source text that determine whether a compile that read it can be cached, and for which paths. They
/// are computed from the same bytes as the text's digest. A value type.
struct TextFacts {
  bool names_file = false;        ///< the output for this text can depend on its own path
  bool names_reader = false;      ///< a macro in it can make another file's output depend on that file's path
  bool names_program = false;     ///< the output can depend on the name of the program (`__BASE_FILE__`)
  bool names_root = false;        ///< it contains the path of one of the given roots
  bool starts_root = false;       ///< it contains the first component of a root's absolute path as a word
  bool computes_include = false;  ///< a macro can make the name of an included file
  bool has_once = false;          ///< it can contain `#pragma once`
  bool pastes = false;            ///< it has a `##` operator
  /// True for NVIDIA's own headers, recognized by their location and the name in them. For these only time macros,
  /// `has_once` and `pastes` are set, the last one always to true. These headers mention `__FILE__` in macros that are
  /// rarely expanded, so that the output is searched instead, and a compile of CUB reads 600 of them.
  bool is_vendors = false;
  std::string time_macro;  ///< time macro in the text (`__TIME__` or the like); empty if there is none
  /// Identifiers that are parts of the name of a time macro, of `__FILE__` or the like, sorted and separated by blanks.
  /// A `##` operator could paste them into such a name.
  std::string pieces;
  friend bool operator==(const TextFacts&, const TextFacts&) = default;
};

/// Computes the facts of texts that a recipe's compile reads. Thread-safe.
class TextScanner {
 public:
  TextScanner() = default;  ///< for texts without a recipe
  explicit TextScanner(const Recipe& recipe);
  /// `path` is the path of the text, as the compiler or the recipe gives it.
  TextFacts facts_of(const std::string& path, std::string_view text) const;

 private:
  bool is_vendors(const std::string& path, std::string_view text) const;

  std::vector<std::string> roots_;  // include roots with absolute paths
  std::vector<std::string> first_components_;
  std::vector<std::string> vendor_roots_;  // include roots with NVIDIA's headers; each ends in a slash
};

/// Returns the first components of absolute paths, each once; an empty one for the path `/`. Other paths have none.
std::vector<std::string> first_components(const std::vector<std::string>& paths);
/// Returns true if the text contains one of the components as a word. Every text contains the empty one.
bool has_component(std::string_view text, const std::vector<std::string>& components);

/// Returns the time macro that the text contains literally; empty if there is none.
std::string_view time_macro(std::string_view text);

/// The parts of macro names in several texts together. Not thread-safe.
class MacroPieces {
 public:
  void add(const TextFacts& facts);
  void add(std::string_view text);
  /// Records that a text has a `##` operator. Without one, nothing is pasted.
  void note_paste() { pastes_ = true; }
  /// Returns the time macro that `##` can build from the parts; empty if there is none.
  std::string_view time_macro() const;
  /// Returns true if `##` can build `__FILE__` or a related macro.
  bool names_file() const;

 private:
  bool can_make(std::string_view macro) const;

  std::set<std::string, std::less<>> pieces_;
  bool pastes_ = false;
};

/// Returns the time macro that the recipe's texts contain or can build from their parts; empty if there is none.
std::string time_macro_of(const Recipe& recipe);

}  // namespace kiln
