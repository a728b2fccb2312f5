// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <kiln/bytes.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// Returns the maximum decompressed size of a frame of this size. A larger size is an attack.
constexpr std::uint64_t max_unpacked_bytes(std::uint64_t stored) { return 1024 * stored + (std::uint64_t{1} << 20); }

/// A compressor that writes zstd frames. Equal bytes give equal frames. Not thread-safe.
class ZstdCompressor {
 public:
  explicit ZstdCompressor(int level);
  ~ZstdCompressor();
  /// Compresses `raw` into one frame, which states its content size and has no checksum. Appends it to `out`.
  Status append_frame(std::string_view raw, std::string& out);

 private:
  struct Context;
  const std::unique_ptr<Context> context_;
};

/// A decompressor of zstd frames. Not thread-safe.
class ZstdDecompressor {
 public:
  ZstdDecompressor();
  ~ZstdDecompressor();
  /// Decompresses a frame that must fill `out`. Returns `Code::Corrupt` unless `frame` is exactly one frame that states
  /// this content size: bytes after or outside that frame would never be read.
  Status decompress(std::span<const std::uint8_t> frame, std::span<std::uint8_t> out);

 private:
  struct Context;
  const std::unique_ptr<Context> context_;
};

/// Allocates memory for decompressed bytes: aligned to 16 bytes and not zeroed, because zeroing would take 10 % of the
/// decompression time. Null if memory is exhausted.
std::shared_ptr<std::uint8_t[]> allocate_uninitialized(std::size_t size);
/// Returns `size` bytes of `memory`, which they keep alive.
Bytes share_bytes(std::shared_ptr<std::uint8_t[]> memory, std::size_t size);

}  // namespace kiln
