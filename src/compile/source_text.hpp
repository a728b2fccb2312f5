#pragma once

#include <string_view>

namespace kiln {

/// Whether compiling this text could make a C-family compiler open a file. Says yes too often (a comment will do),
/// never no too often.
bool could_include(std::string_view text);

/// Whether what the compiler makes of this text can depend on the name of the file that it is in.
bool could_name_its_file(std::string_view text);

/// The macro by which the text takes the time of the compile into its output; empty where it has none.
std::string_view time_macro(std::string_view text);

}  // namespace kiln
