// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln {

/// Returns true if this machine seems to have a CUDA device, based on device nodes. It opens no library and no file.
bool is_cuda_device_present();

}  // namespace kiln
