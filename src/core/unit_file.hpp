// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// Returns a CUDA or OpenCL unit with the text of the file at `path`. A CUDA source with a quoted include gets the
/// file's directory as its first include root, as with other compilers.
Unit unit_of_file(const std::string& kind, std::string name, const std::string& path, std::string text);

/// Returns the base name of a path, which is the name of a file's unit by default.
std::string unit_name_of_file(const std::string& path);

/// Reads a source file. Returns Code::Io if that fails.
Result<std::string> read_source(const std::string& path);

}  // namespace kiln
