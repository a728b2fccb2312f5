#pragma once

#include <string>
#include <string_view>

#include <kiln/result.hpp>

namespace kiln {

Error failure(Code code, std::string message, std::string log = {});

/// Its text is short enough to need none.
Error out_of_memory() noexcept;

/// What the system calls this errno, without the locale's or strerror's shared buffer.
std::string errno_text(int error);

/// `cannot open /a/b: Permission denied`, from "cannot open", "/a/b" and errno.
Error io_failure(std::string_view what, std::string_view path, int error);

}  // namespace kiln
