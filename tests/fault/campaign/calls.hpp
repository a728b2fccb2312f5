// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kiln::test {

/// Convert between the name and the number of a system call. The number is -1 for an unknown name.
long call_number(const std::string& name);
std::string call_name(long number);

/// Returns which argument is a path, 0 or 1; -1 if none is.
int path_argument(const std::string& name);

/// Returns the number of an error such as `ENOSPC`; 0 for an unknown name.
int error_number(const std::string& name);

}  // namespace kiln::test
