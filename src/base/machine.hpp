#pragma once

#include <cstdint>

namespace kiln {

/// How many processors this process may run on; at least one.
unsigned usable_cores();

/// How many bytes of memory can be had without swapping, as far as the machine and the control group of this process
/// say. Where neither does, as much as one likes.
std::uint64_t available_memory();

}  // namespace kiln
