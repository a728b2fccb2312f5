// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/recipe.hpp"

namespace kiln {

/// Returns true for a letter, a digit or an underscore, as in the C family.
bool is_word(char c);

/// Returns the text as a preprocessor sees it: with lines joined at a backslash. Blanks after the backslash are
/// allowed, as in compilers.
std::string join_lines(std::string_view text);
/// Returns true if `join_lines` changes the text.
bool has_joined_lines(std::string_view text);

/// Returns true if compiling this text could make a C-family compiler open a file. False positives are possible (a
/// comment is enough), false negatives are not.
bool may_include(std::string_view text);

/// Returns true if the name of an included file can come from a macro (`#include NAME`, `__has_include(NAME)`). False
/// positives are possible. A macro that expands to `__has_include` itself is not recognized.
bool may_compute_include(std::string_view text);

/// Returns true if the output for this text can depend on the name of its file.
bool may_expand_file_macro(std::string_view text);

/// Returns true if a header that is included after this text can produce output that depends on the header's name.
/// Unlike `may_expand_file_macro` it accepts `assert`, whose __FILE__ is that of the file in which it is written.
bool may_expand_includer_name(std::string_view text);

/// Returns true if the output for this text, or for a header included after it, can depend on the name of the program
/// that is compiled.
bool may_expand_base_file(std::string_view text);

/// Returns the longest prefix of a source that consists of whitespace, comments and complete preprocessor directives,
/// up to and including the line break of the last directive that is not a pragma. A compiler would put this prefix into
/// a precompiled header. Returns an empty view if the prefix includes nothing, if an #if is still open at its end, or
/// if a compiler could interpret it differently or reject it: trigraphs, digraphs, `_Pragma` as the first code, raw
/// strings, #line, pragmas about precompiled headers, unusual line breaks. The result is a view into `source`.
std::string_view leading_directives(std::string_view source);

/// Returns the options of a recipe and those that its compiler takes from the environment.
std::vector<std::string_view> options_of(const Recipe& recipe);
/// Returns all texts that the recipe contains: source, preamble, in-memory headers and options.
std::vector<std::string_view> texts_of(const Recipe& recipe);

/// Returns true if the options write paths and times of files into the output.
bool has_debug_options(const Recipe& recipe);

}  // namespace kiln
