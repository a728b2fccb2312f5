#pragma once

#include <string>
#include <string_view>

#include "core/recipe.hpp"

namespace kiln {

/// Whether compiling this text could make a C-family compiler open a file. Says yes too often (a comment will do),
/// never no too often.
bool could_include(std::string_view text);

/// Whether what the compiler makes of this text can depend on the name of the file that it is in.
bool could_name_its_file(std::string_view text);

/// Whether what a header makes of this text, once it has been included behind it, can depend on that header's name.
/// Unlike `could_name_its_file` it passes `assert`, whose __FILE__ is that of whoever writes it.
bool could_name_its_reader(std::string_view text);

/// The macro by which the text takes the time of the compile into its output; empty where it has none.
std::string_view time_macro(std::string_view text);
/// Likewise of all texts that the recipe itself has; headers from files are not among them.
std::string time_macro_of(const Recipe& recipe);

/// Whether the options put paths and times of files into the output.
bool has_debug_options(const Recipe& recipe);

}  // namespace kiln
