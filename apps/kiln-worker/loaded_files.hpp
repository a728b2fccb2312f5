// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kiln/key.hpp>

namespace kiln {

/// Returns a digest of the files that this process runs with: the program, the C library and every other library that
/// is loaded now, each by its path, its build id and the identity, size and times of its file. Returns zeros if it
/// cannot be determined.
Digest loaded_files_digest();

}  // namespace kiln
