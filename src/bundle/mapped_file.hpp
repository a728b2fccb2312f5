#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <kiln/bytes.hpp>
#include <kiln/result.hpp>

#include "base/files.hpp"

namespace kiln {

/// A regular file that was opened to be read. A link is followed to one: whoever may put a link there may put any bytes
/// there, and what a bundle says is believed for its signature alone.
struct OpenedFile {
  Fd fd;
  std::uint64_t size = 0;
};

/// `name` in the folder `directory` (AT_FDCWD: any path). Nothing where there is none; `shown` is what errors call it.
Result<std::optional<OpenedFile>> open_regular_file(int directory, const std::string& name, const std::string& shown);

/// The whole of it, mapped: the mapping lives as long as the bytes do. Whoever shortens the file meanwhile ends the
/// reader, and whoever writes to it changes the bytes.
Result<Bytes> map_file(const OpenedFile& file, const std::string& shown);

}  // namespace kiln
