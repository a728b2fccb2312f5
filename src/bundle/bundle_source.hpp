#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <kiln/bytes.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// Where the bytes of a bundle lie: in one file, in memory, in a folder or in an image layout. It reads nothing into
/// them. Any thread may call any function. What it hands out may change under the reader's hands (it is a file,
/// mapped): whoever checks bytes checks a copy.
class BundleSource {
 public:
  virtual ~BundleSource() = default;

  /// The head, and where all is in one piece everything behind it.
  virtual Result<Bytes> head() = 0;
  /// A group of blobs: its number, where it begins in a bundle that is one piece, and its size as the header says.
  virtual Result<Bytes> group(std::uint32_t number, std::uint64_t offset, std::uint64_t size) = 0;
  /// Whether all is there, of these sizes, and nothing else. Contents are not looked at. Code::Corrupt says what is
  /// not.
  virtual Status check(std::uint64_t head_size, std::span<const std::uint64_t> group_sizes) = 0;
  /// For people: the path, or in which library it is.
  virtual std::string describe() const = 0;
};

/// One file, mapped. It must be replaced by renaming another over it, as a library is: to shorten one that is mapped
/// ends whoever reads it.
Result<std::unique_ptr<BundleSource>> open_bundle_file(const std::string& path);
/// Memory that lives as long as `bytes` says.
std::unique_ptr<BundleSource> bundle_in_memory(Bytes bytes, std::string name);
/// Whatever lies at the path: a file, an OCI image layout, or a folder of files `head` and `group-0000`…, itself or in
/// its folder `kiln`: an image volume, mounted.
Result<std::unique_ptr<BundleSource>> open_bundle_source(const std::string& path);

}  // namespace kiln
