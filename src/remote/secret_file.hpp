#pragma once

#include <optional>
#include <string>

#include <kiln/result.hpp>

namespace kiln {

/// The first line of a file that has a token or a password in it, without its end; nothing where there is no such file.
/// No error has any of it.
Result<std::optional<std::string>> read_secret(const std::string& path);

}  // namespace kiln
