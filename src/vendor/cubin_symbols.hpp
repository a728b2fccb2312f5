#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// The symbols of the kernels in a cubin, in its own order. Code::Corrupt where the bytes are no whole cubin.
Result<std::vector<std::string>> kernel_symbols(std::string_view bytes);

}  // namespace kiln
