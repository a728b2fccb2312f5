// SPDX-License-Identifier: Apache-2.0
#include <kiln/version.hpp>

namespace kiln {

#define KILN_TEXT_OF(x) #x
#define KILN_TEXT(x) KILN_TEXT_OF(x)

const char* version() {
  return KILN_TEXT(KILN_VERSION_MAJOR) "." KILN_TEXT(KILN_VERSION_MINOR) "." KILN_TEXT(KILN_VERSION_PATCH);
}

}  // namespace kiln
