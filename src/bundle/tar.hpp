// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

// The only tar format that layers of kiln images use: POSIX ustar with one directory and a few regular files, and with
// fixed values for everything that could differ between machines (times, owners, modes). Each layer therefore has
// exactly one encoding, and a reader compares each header with the one that it would have written.

inline constexpr std::size_t kTarBlock = 512;
inline constexpr std::uint64_t kMaxTarFileBytes = (std::uint64_t{1} << 33) - 1;  ///< eleven octal digits
inline constexpr std::size_t kMaxTarFiles = 16;

struct TarInput {
  std::string name;  ///< including its directory; at most 100 characters
  std::string_view bytes;
};
/// Returns a tar file. `directory` ends with a slash. Returns `Code::InvalidArgument` if a name or size exceeds the
/// format.
Result<std::string> write_tar(const std::string& directory, std::initializer_list<TarInput> files);
/// Returns the size of a tar file with files of these sizes.
std::uint64_t tar_size(std::initializer_list<std::uint64_t> sizes);

struct TarFile {
  std::string name;
  std::uint64_t offset = 0;  ///< offset of its bytes in the archive
  std::uint64_t size = 0;
};
/// An archive that is read once, sequentially.
class ArchiveStream {
 public:
  virtual ~ArchiveStream() = default;
  /// Returns the number of remaining bytes.
  virtual std::uint64_t left() const = 0;
  /// Fills `out` with the next bytes. At least that many remain.
  virtual Status read(std::span<char> out) = 0;
  /// Skips `size` bytes. At least that many remain.
  virtual Status skip(std::uint64_t size) = 0;
};
/// Lists the files of an archive. Accepts any bytes. Returns `Code::Corrupt` for everything that `write_tar` does not
/// write, and passes on errors of the stream. On an error, part of the archive may be unread.
Result<std::vector<TarFile>> read_tar(ArchiveStream& archive, const std::string& directory);
Result<std::vector<TarFile>> read_tar(std::span<const std::uint8_t> archive, const std::string& directory);

}  // namespace kiln
