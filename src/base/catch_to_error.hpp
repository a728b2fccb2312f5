// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <string>
#include <type_traits>

#include "base/error.hpp"

namespace kiln {

/// Calls a function and converts exceptions into errors: std::bad_alloc, and exceptions of user callbacks. Used at
/// public entry points and in kiln's threads, which must not end the process. Modules let std::bad_alloc pass
/// (docs/internals/decisions/0013.md).
template <class Function>
std::invoke_result_t<Function> catch_to_error(const Function& function) noexcept {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& thrown) {
    try {
      return make_error(Code::Internal, std::string("unexpected exception: ") + thrown.what());
    } catch (...) {
      return out_of_memory();
    }
  } catch (...) {
    return out_of_memory();
  }
}

/// Runs an optional action and ignores every exception, for example emitting an event or caching a value.
template <class Function>
void ignore_failures(const Function& function) noexcept {
  try {
    function();
  } catch (...) {
    // The action is optional.
  }
}

}  // namespace kiln
