#pragma once

#include <string>

namespace kiln {

/// Whether this machine seems to have a device for units of a kind ("cuda", "opencl"), told from device nodes and ICD
/// files: no library is opened, and where there is none no file either.
bool device_present(const std::string& kind);

}  // namespace kiln
