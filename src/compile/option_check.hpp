#pragma once

#include <span>
#include <string_view>

#include <kiln/result.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// An option that kiln does not pass on to a compiler, alone or with a value, and why.
struct RefusedOption {
  std::string_view option;
  std::string_view why;
};

/// Whether a unit has none of these options, nor one that has ptxas take further options from a file.
/// Code::InvalidArgument that names the option where it has one.
Status check_options(const Unit& unit, std::span<const RefusedOption> refused);

/// Whether an option has ptxas, to which NVIDIA's compilers pass options on, take further ones from a file.
bool names_option_file(std::string_view option);

}  // namespace kiln
