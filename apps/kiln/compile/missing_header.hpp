// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kiln/result.hpp>

namespace kiln::cli {

/// Returns the next step if a compile failed because it did not find one of NVIDIA's headers: the include directory of
/// this machine that has it, or the package that contains it. Returns an empty text for other errors and headers.
std::string missing_header_hint(const Error& error);

}  // namespace kiln::cli
