// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kiln/kernel.hpp>

namespace kiln {

/// Returns the parameter of a type as compilers print it, for example "unsigned int", "uint" or "float const*". Its
/// kind and size are unknown for a structure, a vector and a name that the program defined.
KernelParameter parameter_of_type(std::string_view type);

/// Returns the parameters of a CUDA kernel, whose sizes the driver reports. The types come from the symbol. They are
/// unknown if it is not mangled (`extern "C"`), if its parameters do not match the sizes, and if it is too long.
KernelParameters parameters_of_symbol(const std::string& symbol, const std::vector<std::size_t>& sizes);

}  // namespace kiln
