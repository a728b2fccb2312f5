#pragma once

#include <string>

namespace kiln::test {

/// The number of a system call; -1 for a name that is none. And the other way round.
long call_number(const std::string& name);
std::string call_name(long number);

/// Which argument of it is a path, 0 or 1; -1 where none is.
int path_argument(const std::string& name);

/// The number of an error, `ENOSPC`; 0 for a name that is none.
int error_number(const std::string& name);

}  // namespace kiln::test
