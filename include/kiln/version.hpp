#pragma once

#include <kiln/export.hpp>

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0

namespace kiln {

/// The version of the library that is linked, "0.1.0"; the macros are that of the headers.
KILN_API const char* version();

}  // namespace kiln
