#pragma once

#include <optional>
#include <string>

#include <kiln/bytes.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// The whole of a file by which kiln is told what to start and whom to believe: a regular file of at most 1 MiB that
/// nobody else can write to. Nothing where there is none; the reason, without the file's name, where it is not taken.
Result<std::optional<Bytes>> read_guarded_file(const std::string& path);

}  // namespace kiln
