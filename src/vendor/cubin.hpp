#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// Whether these bytes are a whole cubin: an ELF file of NVIDIA's machine whose parts all lie within it.
/// Code::LoadRefused where they are not. The driver takes an image without its size and believes every offset in it, so
/// this is asked before. Damage inside the parts is for the store's checksums.
Status check_cubin(std::string_view bytes);

/// What can be told of a cubin without a driver.
struct CubinContents {
  std::vector<std::string> kernels;  ///< their symbols
  bool has_line_table = false;       ///< it says which lines of which files its code came from
};

/// The contents of a cubin; those of bytes that `check_cubin` refuses are its error. What is damaged inside is left
/// out.
Result<CubinContents> read_cubin(std::string_view bytes);

/// The symbols of the kernels in PTX, which says `.entry name(` for each.
std::vector<std::string> ptx_kernels(std::string_view text);

}  // namespace kiln
