#pragma once

#include <cstddef>
#include <functional>

namespace kiln {

/// Is told, now and then, how far something long is: so much of so much. Null: nobody wants to know.
using Advance = std::function<void(std::size_t done, std::size_t all)>;

}  // namespace kiln
