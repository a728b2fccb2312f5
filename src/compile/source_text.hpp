#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/recipe.hpp"

namespace kiln {

/// Whether it is a letter, a digit or an underscore, as the C family counts them.
bool is_word(char c);

/// The text as a preprocessor sees it: lines are joined where a backslash ends one, blanks behind it or not, which
/// compilers forgive.
std::string join_lines(std::string_view text);

/// Whether compiling this text could make a C-family compiler open a file. Says yes too often (a comment will do),
/// never no too often.
bool could_include(std::string_view text);

/// Whether what the compiler makes of this text can depend on the name of the file that it is in.
bool could_name_its_file(std::string_view text);

/// Whether what a header makes of this text, once it has been included behind it, can depend on that header's name.
/// Unlike `could_name_its_file` it passes `assert`, whose __FILE__ is that of whoever writes it.
bool could_name_its_reader(std::string_view text);

/// Whether what the compiler makes of this text, or of a header behind it, can depend on the name of the program that
/// is being compiled.
bool could_name_its_program(std::string_view text);

/// The longest start of a source that consists of whitespace, comments and whole preprocessor directives, up to and
/// with the line break of the last one that is no pragma: what a compiler would put into a precompiled header. Empty
/// where nothing is included in it, where an #if is still open at its end, and where a compiler may see it otherwise or
/// refuse it: trigraphs, digraphs, `_Pragma` as the first code, raw strings, #line, pragmas about precompiled headers,
/// odd line breaks. A view into `source`.
std::string_view leading_directives(std::string_view source);

/// The macro by which the text takes the time of the compile into its output; empty where it has none.
std::string_view time_macro(std::string_view text);
/// Likewise of all texts that the recipe itself has.
std::string time_macro_of(const Recipe& recipe);

/// The options of a recipe, and what its compiler takes for such from the environment.
std::vector<std::string_view> options_of(const Recipe& recipe);
/// All texts that the recipe itself has: source, preamble, headers from memory and those options.
std::vector<std::string_view> texts_of(const Recipe& recipe);

/// Whether the options put paths and times of files into the output.
bool has_debug_options(const Recipe& recipe);

}  // namespace kiln
