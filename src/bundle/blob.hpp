// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/bytes.hpp>
#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/mutex.hpp"
#include "base/zstd_frame.hpp"
#include "bundle/bundle_format.hpp"
#include "bundle/bundle_source.hpp"

namespace kiln {

/// A blob in its stored form.
struct PackedBlob {
  BlobLocation::Method method = BlobLocation::Method::Raw;
  std::uint32_t raw = 0;
  std::string stored;
};

/// Compresses blobs independently: equal bytes give equal blobs. Not thread-safe.
class BlobPacker {
 public:
  BlobPacker();
  Result<PackedBlob> pack(std::string raw);

 private:
  ZstdCompressor compressor_;
};

/// Decompresses blobs after verifying their digest. Thread-safe.
class BlobUnpacker {
 public:
  BlobUnpacker();
  ~BlobUnpacker();
  /// Reads the blob once into private memory, then verifies and decompresses that copy. The result is aligned to 16
  /// bytes.
  Result<Bytes> unpack(const BlobLocation& location, BundleSource& source, const BundleGroup& group);

 private:
  struct Context;
  std::unique_ptr<Context> take();
  void give_back(std::unique_ptr<Context> context);

  Mutex mutex_;
  std::vector<std::unique_ptr<Context>> idle_ KILN_GUARDED_BY(mutex_);
};

/// An artifact with its keys in a bundle. Its cost and log are not stored.
struct ArtifactBlob {
  ArtifactKey key;
  RequestKey request;
  Artifact artifact;
};
std::string encode_artifact_blob(const ArtifactKey& key, const RequestKey& request, const Artifact& artifact);
/// Decodes an artifact. Its bytes share memory with `blob`.
Result<ArtifactBlob> decode_artifact_blob(const Bytes& blob);

}  // namespace kiln
