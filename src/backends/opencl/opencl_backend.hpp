// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend_factory.hpp"

namespace kiln {

/// Returns the backend for units of OpenCL C.
const BackendFactory& opencl_backend();

}  // namespace kiln
