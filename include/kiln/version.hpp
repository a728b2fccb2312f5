// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kiln/export.hpp>

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0

namespace kiln {

/// Returns the version of the linked library, for example "0.1.0". The macros above give the version of the headers.
KILN_API const char* version();

}  // namespace kiln
