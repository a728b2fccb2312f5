// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include <kiln/launch.hpp>
#include <kiln/result.hpp>

namespace kiln {

// Argument checks that every device performs before it calls its driver.

/// Returns Code::InvalidArgument if the grid or the block is empty.
Status check_sizes(const LaunchConfig& config);

/// Returns Code::InvalidArgument if the number of arguments differs from that of the kernel's parameters.
Status check_argument_count(const std::string& kernel, std::size_t wanted, std::size_t given);

/// Returns true if the caller set an allocator; Code::InvalidArgument if only one of its functions is set.
Result<bool> has_allocator(const Allocator& allocator);

/// Allocates with the caller's allocator. Returns an error if it returns no memory.
Result<void*> allocate_with(const Allocator& allocator, std::size_t bytes, void* stream);

/// Rejects an allocation of 0 bytes, which is a mistake and on which drivers differ.
Status check_allocation(std::size_t bytes);

/// Returns the error; `why` is the message of the driver or the allocator.
Error out_of_memory(std::size_t bytes, const std::string& reason);

}  // namespace kiln
