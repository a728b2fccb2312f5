#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include <kiln/bytes.hpp>
#include <kiln/result.hpp>

#include "base/files.hpp"

namespace kiln {

// The files in which the pieces of a bundle lie, or of an image that carries one. Links are followed: whoever may put a
// link there may put any bytes there, and what a bundle says is believed for its signature alone.

inline constexpr const char* kBundleHeadName = "head";
/// `group-0007`.
std::string bundle_group_name(std::uint32_t number);

/// A regular file that was opened to be read.
struct OpenedFile {
  Fd fd;
  std::uint64_t size = 0;
};

/// `name` in the folder `directory` (AT_FDCWD: any path). Nothing where there is none; `shown` is what errors call it.
Result<std::optional<OpenedFile>> open_regular_file(int directory, const std::string& name, const std::string& shown);
/// One that is missing is Code::Corrupt.
Result<OpenedFile> open_piece(int directory, const std::string& name, const std::string& shown);
/// And so is one of another size than `whole` ("the bundle", "the image") says.
Result<OpenedFile> open_piece(int directory, const std::string& name, const std::string& shown, std::uint64_t size,
                              const std::string& whole);
/// Code::Corrupt where a folder has anything but these names; `path` is what the error calls it.
Status check_nothing_else(int directory, const std::string& path, const std::set<std::string>& names,
                          const std::string& whole);

/// The whole of it, mapped: the mapping lives as long as the bytes do. Whoever shortens the file meanwhile ends the
/// reader, and whoever writes to it changes the bytes.
Result<Bytes> map_file(const OpenedFile& file, const std::string& shown);

}  // namespace kiln
