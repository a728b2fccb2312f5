#include "device/checks.hpp"

#include "base/error.hpp"

namespace kiln {
namespace {

bool is_empty(const Dim3& size) { return size.x == 0 || size.y == 0 || size.z == 0; }

}  // namespace

Status check_sizes(const Launch& how) {
  if (is_empty(how.grid)) return failure(Code::InvalidArgument, "a grid has at least one block in each dimension");
  if (is_empty(how.block)) return failure(Code::InvalidArgument, "a block has at least one thread in each dimension");
  return {};
}

Status check_argument_count(const std::string& kernel, std::size_t wanted, std::size_t given) {
  if (wanted == given) return {};
  return failure(Code::InvalidArgument,
                 kernel + " takes " + std::to_string(wanted) + " arguments and was given " + std::to_string(given));
}

Result<bool> is_given(const Allocator& allocator) {
  if (static_cast<bool>(allocator.allocate) != static_cast<bool>(allocator.release)) {
    return failure(Code::InvalidArgument, "an allocator is two functions, and only one of them was given");
  }
  return static_cast<bool>(allocator.allocate);
}

Result<void*> allocate_from(const Allocator& allocator, std::size_t bytes, void* stream) {
  void* memory = allocator.allocate(bytes, stream);
  if (memory != nullptr) return memory;
  return out_of_memory(bytes, allocator.why ? allocator.why() : "the allocator that was given has no more");
}

Status check_allocation(std::size_t bytes) {
  if (bytes == 0) return failure(Code::InvalidArgument, "an allocation has at least one byte");
  return {};
}

Error out_of_memory(std::size_t bytes, const std::string& why) {
  return failure(Code::Unavailable, "no device memory for " + std::to_string(bytes) + " bytes: " + why);
}

}  // namespace kiln
