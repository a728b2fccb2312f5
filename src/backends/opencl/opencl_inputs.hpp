// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// Checks that a unit can be passed to an OpenCL compiler. Headers come from memory, so include directories and options
/// that name files are rejected. Header names that point outside the driver's directory for headers are rejected, too.
Status check_opencl_inputs(const Unit& unit);

/// Returns the reason why the output for this unit can depend on more than the unit and the compiler's identity; empty
/// if it cannot. Drivers search `#include "x.h"` in the working directory (PoCL 3.1 does), so a name that is not among
/// the unit's headers is a file that kiln does not track.
std::string opencl_untracked_inputs(const Unit& unit);

/// Returns the environment variables that change a driver's output, sorted by name. All variables of PoCL count, except
/// those known to affect only where it runs and what it prints.
std::vector<std::pair<std::string, std::string>> opencl_environment();

/// Returns the environment variables by which loaders and drivers find devices and store files, with their values.
/// Another process needs them to see the same devices. Variables of `opencl_environment` are not included.
std::vector<std::pair<std::string, std::string>> opencl_place();

/// Returns the options that clLinkProgram accepts, too.
std::string opencl_link_options(const std::vector<std::string>& options);

}  // namespace kiln
