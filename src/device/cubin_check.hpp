#pragma once

#include <string_view>

#include <kiln/result.hpp>

namespace kiln {

/// Whether these bytes are a whole cubin: an ELF file of NVIDIA's machine whose parts all lie within it.
/// Code::LoadRefused where they are not. The driver takes an image without its size and believes every offset in it, so
/// this is asked before. Damage inside the parts is for the store's checksums.
Status check_cubin(std::string_view bytes);

}  // namespace kiln
