// SPDX-License-Identifier: Apache-2.0
#include "core/cccl_envelope.hpp"

#include <utility>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "core/cccl_spec.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNCCL1";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kChecksum = 8;
// The library reads numbers in its blob in place.
constexpr std::size_t kAlignment = 16;
constexpr std::size_t kMaxRelease = 256;
constexpr std::uint32_t kMaxKernels = 4096;

Error corrupt(std::string what) { return make_error(Code::Corrupt, "invalid CCCL envelope: " + std::move(what)); }

std::size_t padding_after(std::size_t size) { return (kAlignment - size % kAlignment) % kAlignment; }

/// Reads all fields between the version and the blob.
CcclEnvelope read_fields(BinaryReader& in) {
  CcclEnvelope envelope;
  const std::uint32_t capability = in.u32();
  if (capability == 0 || capability > static_cast<std::uint32_t>(cccl::kMaxCapability)) in.fail();
  envelope.capability = static_cast<int>(capability);
  const auto text = [&](std::size_t maximum) {
    const std::string_view read = in.text();
    if (read.size() > maximum) in.fail();
    return in.ok() ? std::string(read) : std::string();
  };
  envelope.spec = text(cccl::kMaxTextLength);
  envelope.release = text(kMaxRelease);
  envelope.build_id = text(kMaxRelease);
  const std::uint32_t kernels = in.count(sizeof(std::uint32_t));
  if (kernels > kMaxKernels) in.fail();
  for (std::uint32_t i = 0; i < kernels && in.ok(); ++i) envelope.kernels.emplace_back(in.text());
  return envelope;
}

}  // namespace

std::string encode(const CcclEnvelope& envelope) {
  BinaryWriter out;
  out.reserve(envelope.blob.size() + envelope.spec.size() + 4096);
  out.raw(kMagic.data(), kMagic.size()).u32(kVersion).u32(static_cast<std::uint32_t>(envelope.capability));
  out.text(envelope.spec).text(envelope.release).text(envelope.build_id);
  out.u32(static_cast<std::uint32_t>(envelope.kernels.size()));
  for (const std::string& kernel : envelope.kernels) out.text(kernel);
  out.u64(envelope.blob.size());
  static constexpr char kZeros[kAlignment] = {};
  out.raw(kZeros, padding_after(out.bytes().size()));
  out.raw(envelope.blob.data(), envelope.blob.size());
  out.u64(xxh3(as_bytes(out.bytes())));
  return std::move(out).bytes();
}

Result<CcclEnvelope> decode_cccl_envelope(std::string_view bytes) {
  BinaryReader in(bytes);
  if (in.raw(kMagic.size()) != kMagic) return corrupt("wrong magic");
  if (const std::uint32_t version = in.u32(); version != kVersion) {
    return corrupt("format version " + std::to_string(version) + "; this version of kiln reads " +
                   std::to_string(kVersion));
  }
  if (in.left() < kChecksum) return corrupt("truncated");
  // Verified before any other field is used.
  const std::string_view covered = bytes.substr(0, bytes.size() - kChecksum);
  if (BinaryReader(bytes.substr(covered.size())).u64() != xxh3(as_bytes(covered))) return corrupt("wrong checksum");

  CcclEnvelope envelope = read_fields(in);
  const std::uint64_t size = in.u64();
  const std::string_view padding = in.raw(padding_after(bytes.size() - in.left()));
  if (padding.find_first_not_of('\0') != std::string_view::npos) in.fail();
  if (!in.ok() || in.left() < kChecksum || size != in.left() - kChecksum) return corrupt("inconsistent fields");
  envelope.blob = in.raw(size);
  return envelope;
}

}  // namespace kiln
