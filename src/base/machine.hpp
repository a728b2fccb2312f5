#pragma once

#include <cstdint>
#include <string>

namespace kiln {

/// How many processors this process may run on; at least one.
unsigned usable_cores();

/// How many bytes of memory can be had without swapping, as far as the machine and the control group of this process
/// say. Where neither does, as much as one likes.
std::uint64_t available_memory();

/// What the calling thread is called; empty where that cannot be told.
std::string thread_name();

}  // namespace kiln
