// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <kiln/result.hpp>

namespace kiln {

Error make_error(Code code, std::string message, std::string log = {});

/// Returns an out-of-memory error. Its message is short enough to need no allocation.
Error out_of_memory() noexcept;

/// Returns the system's message for this errno, without using the locale or the shared buffer of strerror.
std::string errno_message(int error);

/// Returns an I/O error such as `cannot open /a/b: Permission denied`, from "cannot open", "/a/b" and errno.
Error io_error(std::string_view what, std::string_view path, int error);

}  // namespace kiln
