#pragma once

#include <exception>
#include <new>
#include <string>
#include <type_traits>

#include "base/error.hpp"

namespace kiln {

/// What a function of ours came to that may run out of memory, or call somebody's function that throws: for what users
/// call and for threads of ours, which must not end the process. Rooms let std::bad_alloc pass (docs/decisions/0013).
template <class Function>
std::invoke_result_t<Function> guarded(const Function& function) noexcept {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& thrown) {
    try {
      return failure(Code::Internal, std::string("something was thrown: ") + thrown.what());
    } catch (...) {
      return out_of_memory();
    }
  } catch (...) {
    return out_of_memory();
  }
}

/// Does what may fail without anybody being worse off for it: telling of something, remembering it.
template <class Function>
void attempt(const Function& function) noexcept {
  try {
    function();
  } catch (...) {
    // Then it is not done.
  }
}

}  // namespace kiln
