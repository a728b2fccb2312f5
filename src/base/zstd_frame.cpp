// SPDX-License-Identifier: Apache-2.0
#include "base/zstd_frame.hpp"

#include <cstring>
#include <new>
#include <utility>

#include <zstd.h>

#include "base/error.hpp"

namespace kiln {
namespace {

bool is_one_frame(std::span<const std::uint8_t> frame, std::size_t raw) {
  std::uint32_t magic = 0;
  if (frame.size() < sizeof magic) return false;
  std::memcpy(&magic, frame.data(), sizeof magic);
  return magic == ZSTD_MAGICNUMBER && ZSTD_getFrameContentSize(frame.data(), frame.size()) == raw &&
         ZSTD_findFrameCompressedSize(frame.data(), frame.size()) == frame.size();
}

}  // namespace

struct ZstdCompressor::Context {
  ZSTD_CCtx* zstd = ZSTD_createCCtx();
  ~Context() { ZSTD_freeCCtx(zstd); }
};

ZstdCompressor::ZstdCompressor(int level) : context_(std::make_unique<Context>()) {
  if (context_->zstd == nullptr) return;
  ZSTD_CCtx_setParameter(context_->zstd, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context_->zstd, ZSTD_c_contentSizeFlag, 1);
  ZSTD_CCtx_setParameter(context_->zstd, ZSTD_c_checksumFlag, 0);  // a digest of the frame replaces it
}

ZstdCompressor::~ZstdCompressor() = default;

Status ZstdCompressor::append_frame(std::string_view raw, std::string& out) {
  const std::size_t begin = out.size();
  out.resize(begin + ZSTD_compressBound(raw.size()));
  const std::size_t size = context_->zstd == nullptr ? ZSTD_CONTENTSIZE_ERROR
                                                     : ZSTD_compress2(context_->zstd, out.data() + begin,
                                                                      out.size() - begin, raw.data(), raw.size());
  if (ZSTD_isError(size)) return make_error(Code::Internal, "zstd cannot compress an artifact: out of memory");
  out.resize(begin + size);
  return {};
}

struct ZstdDecompressor::Context {
  ZSTD_DCtx* zstd = ZSTD_createDCtx();
  ~Context() { ZSTD_freeDCtx(zstd); }
};

ZstdDecompressor::ZstdDecompressor() : context_(std::make_unique<Context>()) {}
ZstdDecompressor::~ZstdDecompressor() = default;

Status ZstdDecompressor::decompress(std::span<const std::uint8_t> frame, std::span<std::uint8_t> out) {
  if (context_->zstd == nullptr) return make_error(Code::Io, "cannot decompress an artifact: out of memory");
  if (!is_one_frame(frame, out.size())) return make_error(Code::Corrupt, "not a single zstd frame of the stated size");
  if (ZSTD_decompressDCtx(context_->zstd, out.data(), out.size(), frame.data(), frame.size()) != out.size())
    return make_error(Code::Corrupt, "the zstd frame cannot be decompressed");
  return {};
}

std::shared_ptr<std::uint8_t[]> allocate_uninitialized(std::size_t size) {
  static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= 16);
  return std::shared_ptr<std::uint8_t[]>(new (std::nothrow) std::uint8_t[size]);
}

Bytes share_bytes(std::shared_ptr<std::uint8_t[]> memory, std::size_t size) {
  const std::uint8_t* const data = memory.get();
  return Bytes(std::shared_ptr<const void>(std::move(memory), data), data, size);
}

}  // namespace kiln
