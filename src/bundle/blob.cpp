#include "bundle/blob.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include <zstd.h>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "core/recipe.hpp"

namespace kiln {
namespace {

constexpr int kLevel = 19;  // unpacking is as fast as from any other level, and packing is done once
constexpr std::size_t kArtifactHead = 32 + 32 + 4 + 4;
constexpr std::size_t kIdleContexts = 8;
constexpr std::size_t kScratchKept = 1 << 20;

Error damaged_blob(std::string what) { return damaged_bundle("with a blob " + std::move(what)); }

// Memory as `new` gives it: aligned to 16, and not zeroed, which would cost a tenth of the unpacking.
std::shared_ptr<std::uint8_t[]> uninitialised(std::size_t size) {
  return std::shared_ptr<std::uint8_t[]>(new (std::nothrow) std::uint8_t[size]);
}
static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= 16);

Bytes bytes_of(std::shared_ptr<std::uint8_t[]> memory, std::size_t size) {
  const std::uint8_t* const data = memory.get();
  return Bytes(std::shared_ptr<const void>(std::move(memory), data), data, size);
}

// Exactly one frame that says how much is in it: what is behind it or beside it would be read by nobody.
bool is_one_frame(std::span<const std::uint8_t> stored, std::size_t raw) {
  std::uint32_t magic = 0;
  if (stored.size() < sizeof magic) return false;
  std::memcpy(&magic, stored.data(), sizeof magic);
  return magic == ZSTD_MAGICNUMBER && ZSTD_getFrameContentSize(stored.data(), stored.size()) == raw &&
         ZSTD_findFrameCompressedSize(stored.data(), stored.size()) == stored.size();
}

}  // namespace

struct BlobPacker::Context {
  ZSTD_CCtx* zstd = ZSTD_createCCtx();
  ~Context() { ZSTD_freeCCtx(zstd); }
};

BlobPacker::BlobPacker() : context_(std::make_unique<Context>()) {
  if (context_->zstd == nullptr) return;
  ZSTD_CCtx_setParameter(context_->zstd, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context_->zstd, ZSTD_c_contentSizeFlag, 1);
  ZSTD_CCtx_setParameter(context_->zstd, ZSTD_c_checksumFlag, 0);  // there is a digest
}

BlobPacker::~BlobPacker() = default;

Result<PackedBlob> BlobPacker::pack(std::string raw) {
  if (raw.size() > kLargestBundleBlob) {
    return failure(Code::Unsupported, "an artifact of " + std::to_string(raw.size()) +
                                          " bytes is too large for a bundle, which takes up to one gigabyte");
  }
  PackedBlob blob;
  blob.raw = static_cast<std::uint32_t>(raw.size());
  blob.stored.resize(ZSTD_compressBound(raw.size()));
  const std::size_t size = context_->zstd == nullptr ? ZSTD_CONTENTSIZE_ERROR
                                                     : ZSTD_compress2(context_->zstd, blob.stored.data(),
                                                                      blob.stored.size(), raw.data(), raw.size());
  if (ZSTD_isError(size)) return failure(Code::Internal, "zstd cannot pack an artifact: there is no memory for it");
  if (size < raw.size() && raw.size() <= most_unpacked(size)) {
    blob.method = BlobPlace::Method::Zstd;
    blob.stored.resize(size);
    blob.stored.shrink_to_fit();
  } else {
    blob.stored = std::move(raw);
  }
  return blob;
}

struct BlobUnpacker::Context {
  ZSTD_DCtx* zstd = ZSTD_createDCtx();
  std::unique_ptr<std::uint8_t[]> scratch;
  std::size_t capacity = 0;

  ~Context() { ZSTD_freeDCtx(zstd); }

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

Result<Bytes> BlobUnpacker::unpack(const BlobPlace& place, std::span<const std::uint8_t> stored) {
  if (stored.size() != place.stored) return damaged_blob("that is cut short");
  auto raw = uninitialised(place.raw);
  if (raw == nullptr) return failure(Code::Io, "there is no memory for a blob of a bundle");
  if (place.method == BlobPlace::Method::Raw) {
    if (place.raw != place.stored) return damaged_blob("whose two sizes differ though it is not packed");
    std::memcpy(raw.get(), stored.data(), stored.size());
    if (sha256({raw.get(), stored.size()}) != place.digest) return damaged_blob("that fails its digest");
    return bytes_of(std::move(raw), place.raw);
  }
  auto context = take();
  std::uint8_t* const copy = context->reserve(stored.size());
  if (context->zstd == nullptr || copy == nullptr) return failure(Code::Io, "there is no memory to unpack a bundle");
  std::memcpy(copy, stored.data(), stored.size());
  const std::span<const std::uint8_t> checked(copy, stored.size());
  std::optional<Error> error;
  if (sha256(checked) != place.digest) {
    error = damaged_blob("that fails its digest");
  } else if (!is_one_frame(checked, place.raw)) {
    error = damaged_blob("that is not one zstd frame of its size");
  } else if (ZSTD_decompressDCtx(context->zstd, raw.get(), place.raw, copy, stored.size()) != place.raw) {
    error = damaged_blob("that cannot be unpacked");
  }
  give_back(std::move(context));
  if (error) return *std::move(error);
  return bytes_of(std::move(raw), place.raw);
}

std::string encode_artifact_blob(const Key& key, const RequestKey& request, const Artifact& artifact) {
  Artifact plain = artifact;
  plain.about.cost_ms = 0;
  plain.about.log.clear();
  const std::string metadata = encode_metadata(plain);
  const std::size_t payload = (kArtifactHead + metadata.size() + 15) / 16 * 16;
  Writer out;
  out.reserve(payload + artifact.bytes.size());
  out.digest(key.digest).digest(request.digest).u32(static_cast<std::uint32_t>(metadata.size())).u32(0);
  out.raw(metadata.data(), metadata.size());
  std::string blob = std::move(out).bytes();
  blob.resize(payload, '\0');
  blob.append(artifact.bytes.view());
  return blob;
}

Result<ArtifactBlob> decode_artifact_blob(const Bytes& blob) {
  Reader in(blob.view());
  ArtifactBlob found;
  found.key.digest = in.digest();
  found.request.digest = in.digest();
  const std::uint32_t metadata_size = in.u32();
  const std::uint32_t reserved = in.u32();
  const std::string_view metadata = in.raw(metadata_size);
  const std::size_t used = kArtifactHead + std::size_t{metadata_size};
  const std::size_t payload = (used + 15) / 16 * 16;
  const std::string_view padding = in.raw(payload - used);
  if (!in.ok()) return damaged_blob("that is shorter than an artifact says it is");
  if (reserved != 0 || !std::all_of(padding.begin(), padding.end(), [](char byte) { return byte == 0; })) {
    return damaged_blob("whose padding is not empty");
  }
  auto artifact = decode_metadata(metadata);
  if (!artifact) return std::move(artifact).error();
  if (std::bit_cast<std::uint64_t>(artifact->about.cost_ms) != 0 || !artifact->about.log.empty()) {
    return damaged_blob("that tells a cost or a log");
  }
  found.artifact = std::move(*artifact);
  found.artifact.bytes = blob.part(payload, blob.size() - payload);
  return found;
}

}  // namespace kiln
