// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// An option that kiln does not pass to a compiler, alone or with a value, and the reason.
struct RejectedOption {
  std::string_view option;
  std::string_view reason;
};

/// Checks that a unit has none of these options and no option that makes ptxas read options from a file. Returns
/// Code::InvalidArgument with the name of the option otherwise.
Status check_options(const Unit& unit, std::span<const RejectedOption> rejected);

/// Returns true if an option makes ptxas, to which NVIDIA's compilers pass options, read more options from a file.
bool names_option_file(std::string_view option);

}  // namespace kiln
