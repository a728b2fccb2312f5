// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kiln {

/// Returns true if this machine seems to have a device for units of a kind ("cuda", "opencl"), based on device nodes
/// and ICD files. It opens no library, and no file if there is none.
bool is_device_present(const std::string& kind);

}  // namespace kiln
