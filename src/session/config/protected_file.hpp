#pragma once

#include <optional>
#include <string>

#include <kiln/bytes.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// Reads a file that controls which programs kiln starts and which keys it trusts: a regular file of at most 1 MiB that
/// only this user or root can have created or written (base/owned_file.hpp). Returns no value if the file does not
/// exist, and an error with the reason and the next step if it is rejected.
Result<std::optional<Bytes>> read_protected_file(const std::string& path);

}  // namespace kiln
