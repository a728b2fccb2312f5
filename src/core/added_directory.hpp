// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kiln {

/// Returns whether a path shows that NVRTC added the working directory to relative names, as version 13.3 and later do
/// outside a worker (apps/kiln-worker/interpose.cpp). NVRTC looks for a file with the name of its built-in header: an
/// absolute path of that name means that all its names have the directory. kiln cannot distinguish such a name from an
/// absolute path in a source, so the recorded names do not show what the compiler would find in another directory.
inline bool has_added_directory(std::string_view path) {
  return path.starts_with('/') && path.ends_with("/__nv_nvrtc_builtin_header.h");
}

}  // namespace kiln
