#pragma once

#include <string>

namespace kiln {

/// Calls NVRTC's function that writes its bundled headers into a directory; see `BundledHeaders`. The process can write
/// only there if it is `sandboxed`. Returns the exit code.
int install_headers(const std::string& library, const std::string& directory, bool sandboxed);

}  // namespace kiln
