#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/bytes.hpp>
#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/mutex.hpp"
#include "bundle/bundle_format.hpp"

namespace kiln {

/// A blob as it will be stored.
struct PackedBlob {
  BlobPlace::Method method = BlobPlace::Method::Raw;
  std::uint32_t raw = 0;
  std::string stored;
};

/// Packs blobs, each by itself: the same bytes give the same blob. One thread at a time.
class BlobPacker {
 public:
  BlobPacker();
  ~BlobPacker();
  Result<PackedBlob> pack(std::string raw);

 private:
  struct Context;
  const std::unique_ptr<Context> context_;
};

/// Unpacks blobs after their digest held. Any thread.
class BlobUnpacker {
 public:
  BlobUnpacker();
  ~BlobUnpacker();
  /// `stored` may change meanwhile: what is checked and unpacked is a copy. The result begins at a multiple of 16.
  Result<Bytes> unpack(const BlobPlace& place, std::span<const std::uint8_t> stored);

 private:
  struct Context;
  std::unique_ptr<Context> take();
  void give_back(std::unique_ptr<Context> context);

  Mutex mutex_;
  std::vector<std::unique_ptr<Context>> idle_ KILN_GUARDED_BY(mutex_);
};

/// An artifact with the names that it has in a bundle. Its cost and log are not kept.
struct ArtifactBlob {
  Key key;
  RequestKey request;
  Artifact artifact;
};
std::string encode_artifact_blob(const Key& key, const RequestKey& request, const Artifact& artifact);
/// The artifact's bytes are a part of `blob`, not a copy.
Result<ArtifactBlob> decode_artifact_blob(const Bytes& blob);

}  // namespace kiln
