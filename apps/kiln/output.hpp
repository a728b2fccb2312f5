#pragma once

#include <string>
#include <string_view>

#include <kiln/result.hpp>

namespace kiln::cli {

/// Writes a file, or to standard output where the path is `-`.
Status write_output(const std::string& path, std::string_view bytes);
/// Makes a file that all may read; Code::Io where there is one of that name already.
Status write_new_file(const std::string& path, std::string_view bytes);
/// Makes the file appear in one step, beside what may be reading an older one: as the old one or the new one.
Status replace_file(const std::string& path, std::string_view bytes);

}  // namespace kiln::cli
