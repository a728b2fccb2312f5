// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <kiln/result.hpp>

namespace kiln::cli {

/// Writes a file, or standard output if the path is `-`.
Status write_output(const std::string& path, std::string_view bytes);
/// Creates a file that all users can read. Returns Code::Io if the file exists.
Status write_new_file(const std::string& path, std::string_view bytes);
/// Replaces a file atomically. Concurrent readers see the old or the new file.
Status replace_file(const std::string& path, std::string_view bytes);

}  // namespace kiln::cli
