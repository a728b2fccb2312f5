// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>

#include <kiln/result.hpp>

#include "base/files/files.hpp"

namespace kiln {

// The files that hold the parts of a bundle, or of an image that contains one. Links are followed: a user that can
// create a link there can write any bytes there, and a bundle is trusted only for its signature.

inline constexpr const char* kBundleHeadName = "head";
/// Returns `group-0007`.
std::string bundle_group_name(std::uint32_t number);

/// A regular file, open for reading.
struct OpenFile {
  Fd fd;
  std::uint64_t size = 0;  ///< when it was opened
  std::string shown;       ///< name in error messages
};

/// Opens `name` in `directory` (any path with `AT_FDCWD`). Returns nothing if it does not exist. Errors call it
/// `shown`.
Result<std::optional<OpenFile>> open_regular_file(int directory, const std::string& name, const std::string& shown);
/// Opens a part. Returns `Code::Corrupt` if it is missing.
Result<OpenFile> open_part(int directory, const std::string& name, const std::string& shown);
/// Opens a part. Also returns `Code::Corrupt` if its size is not `size`, which `whole` ("the bundle", "the image")
/// states.
Result<OpenFile> open_part(int directory, const std::string& name, const std::string& shown, std::uint64_t size,
                           const std::string& whole);
/// Returns `Code::Corrupt` if a directory contains anything but these names. Errors call it `path`.
Status check_no_extra_files(int directory, const std::string& path, const std::set<std::string>& names,
                            const std::string& whole);

/// Fills `out` with the bytes of the file from `offset`. Returns `Code::Corrupt` if the file ends earlier, even if
/// another process truncated it after it was opened. Bundle files are never mapped, because reading a mapping of a
/// truncated file raises SIGBUS. Thread-safe.
Status read_piece(const OpenFile& file, std::uint64_t offset, std::span<std::uint8_t> out);

}  // namespace kiln
