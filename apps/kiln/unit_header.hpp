#pragma once

#include <string>

#include <kiln/result.hpp>

namespace kiln::cli {

/// A C++ header with one function for each source of a kiln.toml, which returns the unit that a bundle of that file
/// has: so that a program which has the bundle asks for what is in it, and the source is written once. CCCL's
/// algorithms are not in it, because a program names those by their specs. Reads the kiln.toml and the sources.
Result<std::string> unit_header(const std::string& manifest, const std::string& name_space);

}  // namespace kiln::cli
