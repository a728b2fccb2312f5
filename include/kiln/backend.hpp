// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <kiln/export.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// An interface to devices. Kinds of units are names instead, because programs can add kinds (`Unit::of_kind`).
enum class Backend : unsigned char { Cuda = 1, OpenCl = 2 };
/// Returns "cuda" or "opencl".
KILN_API const char* to_string(Backend backend);
/// Parses "cuda" or "opencl".
KILN_API Result<Backend> parse_backend(std::string_view text);

}  // namespace kiln
