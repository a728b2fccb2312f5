#pragma once

#include <string>
#include <utility>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// Whether an OpenCL compiler may be given this unit at all: headers come from memory, so include folders and options
/// that name files are refused, and so are header names that lead out of the folder where a driver keeps them.
Status check_opencl_inputs(const Unit& unit);

/// Why what the compiler makes of this unit may depend on more than the unit and the compiler's identity, in words;
/// empty where it cannot. Drivers look for `#include "x.h"` in the working directory (PoCL 3.1 does), so a name that is
/// not among the unit's headers is a file that nobody checks.
std::string opencl_hidden_inputs(const Unit& unit);

/// The environment variables that change what a driver builds, sorted by name. All of PoCL's count, except those that
/// are known to concern only where it runs and what it says.
std::vector<std::pair<std::string, std::string>> opencl_environment();

/// Those of the options that clLinkProgram takes too.
std::string opencl_link_options(const std::vector<std::string>& options);

}  // namespace kiln
