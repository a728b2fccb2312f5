// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <kiln/bytes.hpp>
#include <kiln/result.hpp>

#include "bundle/bundle_image.hpp"

namespace kiln {

/// A group of blobs as described in the header of a bundle. A value type.
struct BundleGroup {
  std::uint32_t number = 0;
  std::uint64_t offset = 0;  ///< start of the group in a single-file bundle
  std::uint64_t size = 0;
};

/// The storage of a bundle: one file, memory, a directory or an OCI image layout. Every read copies bytes into the
/// caller's buffer. Files may change at any time, so the caller verifies and uses its copy. A file that another process
/// truncates is `Code::Corrupt`, never a signal. Nothing is interpreted. Thread-safe.
class BundleSource {
 public:
  virtual ~BundleSource() = default;

  /// Returns the size of the head, or the size of everything for a single-file bundle.
  virtual Result<std::uint64_t> head_size() = 0;
  /// Fills `out` from byte `offset` of the head. Returns `Code::Corrupt` if the head ends earlier.
  virtual Status read_head(std::uint64_t offset, std::span<std::uint8_t> out) = 0;
  /// Fills `out` from byte `offset` of a group. Returns `Code::Corrupt` if the group ends earlier or has a different
  /// size.
  virtual Status read_group(const BundleGroup& group, std::uint64_t offset, std::span<std::uint8_t> out) = 0;
  /// Checks that all parts exist with these sizes and that there is nothing else. Contents are not read.
  /// `Code::Corrupt` states the difference.
  virtual Status check(std::uint64_t head_size, std::span<const std::uint64_t> group_sizes) = 0;
  /// Returns a human-readable location: the path, or the library that contains it.
  virtual std::string describe() const = 0;
};

/// Opens a file and keeps it open. To replace a bundle, rename another file over it, as with a library.
Result<std::unique_ptr<BundleSource>> open_bundle_file(const std::string& path);
/// Returns a source for memory that `bytes` owns and that cannot shrink.
std::unique_ptr<BundleSource> bundle_in_memory(Bytes bytes, std::string name);
/// Returns a source for parts in memory, which must outlive the source.
std::unique_ptr<BundleSource> bundle_in_image(const BundleImage& image, std::string name);
/// Opens the bundle at a path: a file, an OCI image layout, or a directory with the files `head` and `group-0000`…,
/// directly or in its subdirectory `kiln` (a mounted image volume).
Result<std::unique_ptr<BundleSource>> open_bundle_source(const std::string& path);

}  // namespace kiln
