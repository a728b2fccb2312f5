// SPDX-License-Identifier: Apache-2.0
#include "backends/argument_checks.hpp"

#include "base/error.hpp"

namespace kiln {
namespace {

bool is_empty(const Dim3& size) { return size.x == 0 || size.y == 0 || size.z == 0; }

}  // namespace

Status check_sizes(const LaunchConfig& config) {
  if (is_empty(config.grid))
    return make_error(Code::InvalidArgument, "invalid grid: it needs at least one block in each dimension");
  if (is_empty(config.block))
    return make_error(Code::InvalidArgument, "invalid block: it needs at least one thread in each dimension");
  return {};
}

Status check_argument_count(const std::string& kernel, std::size_t wanted, std::size_t given) {
  if (wanted == given) return {};
  return make_error(Code::InvalidArgument,
                    kernel + " takes " + std::to_string(wanted) + " arguments but got " + std::to_string(given));
}

Result<bool> has_allocator(const Allocator& allocator) {
  if (static_cast<bool>(allocator.allocate) != static_cast<bool>(allocator.release)) {
    return make_error(Code::InvalidArgument, "invalid allocator: only one of its two functions is set");
  }
  return static_cast<bool>(allocator.allocate);
}

Result<void*> allocate_with(const Allocator& allocator, std::size_t bytes, void* stream) {
  Result<void*> memory = allocator.allocate(bytes, StreamRef::from_native(stream));
  if (!memory) return out_of_memory(bytes, memory.error().message);
  if (*memory == nullptr) return out_of_memory(bytes, "the given allocator returned no memory");
  return memory;
}

Status check_allocation(std::size_t bytes) {
  if (bytes == 0) return make_error(Code::InvalidArgument, "invalid allocation: it needs at least one byte");
  return {};
}

Error out_of_memory(std::size_t bytes, const std::string& reason) {
  return make_error(Code::Unavailable,
                    "cannot allocate " + std::to_string(bytes) + " bytes of device memory: " + reason);
}

}  // namespace kiln
