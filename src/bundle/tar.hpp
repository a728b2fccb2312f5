#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

// The tar files that layers of our images are, and no others: POSIX's ustar, one folder, a few regular files in it,
// everything that could differ between two machines (times, owners, modes) fixed. So there is one way to write a layer,
// and a reader compares each header with the one that it would have written.

inline constexpr std::size_t kTarBlock = 512;
inline constexpr std::uint64_t kLargestTarFile = (std::uint64_t{1} << 33) - 1;  ///< eleven octal digits
inline constexpr std::size_t kMostTarFiles = 16;

struct TarInput {
  std::string name;  ///< with its folder; at most 100 characters
  std::string_view bytes;
};
/// `folder` ends with a slash. Code::InvalidArgument for a name or a size that the format has no room for.
Result<std::string> write_tar(const std::string& folder, std::initializer_list<TarInput> files);
/// How long the result is for files of these sizes.
std::uint64_t tar_size(std::initializer_list<std::uint64_t> sizes);

struct TarFile {
  std::string name;
  std::uint64_t offset = 0;  ///< of its bytes in the archive
  std::uint64_t size = 0;
};
/// Any bytes may be given. Code::Corrupt for all that `write_tar` does not write.
Result<std::vector<TarFile>> read_tar(std::span<const std::uint8_t> archive, const std::string& folder);

}  // namespace kiln
