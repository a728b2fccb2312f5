// SPDX-License-Identifier: Apache-2.0
#include "bundle/blob.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/zstd_frame.hpp"
#include "core/recipe.hpp"

namespace kiln {
namespace {

constexpr int kLevel = 19;  // decompression is as fast as at any other level, and compression is done once
constexpr std::size_t kArtifactHead = 32 + 32 + 4 + 4;
constexpr std::size_t kIdleContexts = 8;
constexpr std::size_t kScratchKept = 1 << 20;

Error corrupt_blob(std::string what) { return corrupt_bundle("blob " + std::move(what)); }

}  // namespace

BlobPacker::BlobPacker() : compressor_(kLevel) {}

Result<PackedBlob> BlobPacker::pack(std::string raw) {
  if (raw.size() > kMaxBundleBlobBytes) {
    return make_error(Code::Unsupported, "an artifact of " + std::to_string(raw.size()) +
                                             " bytes is too large for a bundle: the limit is 1 GiB");
  }
  PackedBlob blob;
  blob.raw = static_cast<std::uint32_t>(raw.size());
  if (Status packed = compressor_.append_frame(raw, blob.stored); !packed) return std::move(packed).error();
  if (blob.stored.size() < raw.size() && raw.size() <= max_unpacked_bytes(blob.stored.size())) {
    blob.method = BlobLocation::Method::Zstd;
    blob.stored.shrink_to_fit();
  } else {
    blob.stored = std::move(raw);
  }
  return blob;
}

struct BlobUnpacker::Context {
  ZstdDecompressor zstd;
  std::unique_ptr<std::uint8_t[]> scratch;
  std::size_t capacity = 0;

  std::uint8_t* reserve(std::size_t size) {
    if (size > capacity) {
      scratch.reset(new (std::nothrow) std::uint8_t[size]);
      capacity = scratch ? size : 0;
    }
    return scratch.get();
  }
};

BlobUnpacker::BlobUnpacker() = default;
BlobUnpacker::~BlobUnpacker() = default;

std::unique_ptr<BlobUnpacker::Context> BlobUnpacker::take() {
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      auto context = std::move(idle_.back());
      idle_.pop_back();
      return context;
    }
  }
  return std::make_unique<Context>();
}

void BlobUnpacker::give_back(std::unique_ptr<Context> context) {
  if (context->capacity > kScratchKept) {
    context->scratch.reset();
    context->capacity = 0;
  }
  MutexLock lock(mutex_);
  if (idle_.size() < kIdleContexts) idle_.push_back(std::move(context));
}

Result<Bytes> BlobUnpacker::unpack(const BlobLocation& location, BundleSource& source, const BundleGroup& group) {
  auto raw = allocate_uninitialized(location.raw);
  if (raw == nullptr) return make_error(Code::Io, "cannot read a blob of a bundle: out of memory");
  if (location.method == BlobLocation::Method::Raw) {
    if (location.raw != location.stored) return corrupt_blob("sizes differ although it is not compressed");
    const std::span<std::uint8_t> bytes(raw.get(), location.raw);
    if (Status read = source.read_group(group, location.offset, bytes); !read) return std::move(read).error();
    if (sha256(bytes) != location.digest) return corrupt_blob("digest mismatch");
    return share_bytes(std::move(raw), location.raw);
  }
  auto context = take();
  std::uint8_t* const memory = context->reserve(location.stored);
  if (memory == nullptr) return make_error(Code::Io, "cannot decompress a bundle: out of memory");
  const std::span<std::uint8_t> stored(memory, location.stored);
  std::optional<Error> error;
  if (Status read = source.read_group(group, location.offset, stored); !read) {
    error = std::move(read).error();
  } else if (sha256(stored) != location.digest) {
    error = corrupt_blob("digest mismatch");
  } else if (Status unpacked = context->zstd.decompress(stored, {raw.get(), location.raw}); !unpacked) {
    error = std::move(unpacked).error();
    if (error->code == Code::Corrupt) error = corrupt_bundle("blob: " + error->message);
  }
  give_back(std::move(context));
  if (error) return *std::move(error);
  return share_bytes(std::move(raw), location.raw);
}

std::string encode_artifact_blob(const ArtifactKey& key, const RequestKey& request, const Artifact& artifact) {
  Artifact plain = artifact;
  plain.metadata.cost_ms = 0;
  plain.metadata.log.clear();
  const std::string metadata = encode_metadata(plain);
  const std::size_t payload = (kArtifactHead + metadata.size() + 15) / 16 * 16;
  BinaryWriter out;
  out.reserve(payload + artifact.bytes.size());
  out.digest(key.digest).digest(request.digest).u32(static_cast<std::uint32_t>(metadata.size())).u32(0);
  out.raw(metadata.data(), metadata.size());
  std::string blob = std::move(out).bytes();
  blob.resize(payload, '\0');
  blob.append(artifact.bytes.view());
  return blob;
}

Result<ArtifactBlob> decode_artifact_blob(const Bytes& blob) {
  BinaryReader in(blob.view());
  ArtifactBlob found;
  found.key.digest = in.digest();
  found.request.digest = in.digest();
  const std::uint32_t metadata_size = in.u32();
  const std::uint32_t reserved = in.u32();
  const std::string_view metadata = in.raw(metadata_size);
  const std::size_t used = kArtifactHead + std::size_t{metadata_size};
  const std::size_t payload = (used + 15) / 16 * 16;
  const std::string_view padding = in.raw(payload - used);
  if (!in.ok()) return corrupt_blob("is shorter than its artifact header states");
  if (reserved != 0 || !std::all_of(padding.begin(), padding.end(), [](char byte) { return byte == 0; })) {
    return corrupt_blob("has nonzero padding");
  }
  auto artifact = decode_metadata(metadata);
  if (!artifact) return std::move(artifact).error();
  if (std::bit_cast<std::uint64_t>(artifact->metadata.cost_ms) != 0 || !artifact->metadata.log.empty()) {
    return corrupt_blob("contains a cost or a log");
  }
  found.artifact = std::move(*artifact);
  found.artifact.bytes = blob.slice(payload, blob.size() - payload);
  return found;
}

}  // namespace kiln
