#pragma once

#include <cstddef>
#include <string>

#include <kiln/launch.hpp>
#include <kiln/result.hpp>

namespace kiln {

// What every device asks of its callers before it asks its driver.

/// Code::InvalidArgument where the grid or the block is empty.
Status check_sizes(const Launch& how);

/// Code::InvalidArgument where a kernel is not given as many arguments as it has.
Status check_argument_count(const std::string& kernel, std::size_t wanted, std::size_t given);

/// Whether the caller gave an allocator; Code::InvalidArgument where he gave half of one.
Result<bool> is_given(const Allocator& allocator);

/// From the caller's allocator; an error where it has none left.
Result<void*> allocate_from(const Allocator& allocator, std::size_t bytes, void* stream);

/// Nobody allocates nothing on purpose, and the drivers do not agree on what it is.
Status check_allocation(std::size_t bytes);

/// `why` is what the driver or the allocator said.
Error out_of_memory(std::size_t bytes, const std::string& why);

}  // namespace kiln
