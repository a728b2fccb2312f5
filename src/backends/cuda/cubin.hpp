// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// Checks that these bytes are a complete cubin: an ELF file of NVIDIA's machine type whose parts are all within it.
/// Returns Code::LoadRejected if they are not. The driver takes an image without its size and trusts every offset in
/// it. The cache's checksums detect corruption inside the parts.
Status check_cubin(std::string_view bytes);

/// The properties of a cubin that are readable without a driver.
struct CubinContents {
  std::vector<std::string> kernels;  ///< symbols of the kernels
  bool has_line_table = false;       ///< true if it has line information
};

/// Returns the contents of a cubin, or the error of `check_cubin`. Skips corrupt parts.
Result<CubinContents> read_cubin(std::string_view bytes);

/// Returns the symbols of the kernels in PTX, which contains `.entry name(` for each.
std::vector<std::string> ptx_kernels(std::string_view text);

}  // namespace kiln
