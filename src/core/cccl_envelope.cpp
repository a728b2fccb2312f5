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
// The library reads numbers in its blob where they lie.
constexpr std::size_t kAlignment = 16;
constexpr std::size_t kMostRelease = 256;
constexpr std::uint32_t kMostKernels = 4096;

Error damaged(std::string what) { return failure(Code::Corrupt, "a CCCL envelope " + std::move(what)); }

std::size_t padding_after(std::size_t size) { return (kAlignment - size % kAlignment) % kAlignment; }

/// All between the version and the blob.
CcclEnvelope read_fields(Reader& in) {
  CcclEnvelope envelope;
  const std::uint32_t capability = in.u32();
  if (capability == 0 || capability > static_cast<std::uint32_t>(cccl::kMostCapability)) in.fail();
  envelope.capability = static_cast<int>(capability);
  const auto text = [&](std::size_t most) {
    const std::string_view read = in.text();
    if (read.size() > most) in.fail();
    return in.ok() ? std::string(read) : std::string();
  };
  envelope.spec = text(cccl::kMostText);
  envelope.release = text(kMostRelease);
  envelope.build_id = text(kMostRelease);
  const std::uint32_t kernels = in.count(sizeof(std::uint32_t));
  if (kernels > kMostKernels) in.fail();
  for (std::uint32_t i = 0; i < kernels && in.ok(); ++i) envelope.kernels.emplace_back(in.text());
  return envelope;
}

}  // namespace

std::string encode(const CcclEnvelope& envelope) {
  Writer out;
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
  Reader in(bytes);
  if (in.raw(kMagic.size()) != kMagic) return damaged("without kiln's mark");
  if (const std::uint32_t version = in.u32(); version != kVersion) {
    return damaged("of format version " + std::to_string(version) + "; this kiln reads " + std::to_string(kVersion));
  }
  if (in.left() < kChecksum) return damaged("that is cut short");
  // Before anything else is believed.
  const std::string_view covered = bytes.substr(0, bytes.size() - kChecksum);
  if (Reader(bytes.substr(covered.size())).u64() != xxh3(as_bytes(covered))) return damaged("that fails its checksum");

  CcclEnvelope envelope = read_fields(in);
  const std::uint64_t size = in.u64();
  const std::string_view padding = in.raw(padding_after(bytes.size() - in.left()));
  if (padding.find_first_not_of('\0') != std::string_view::npos) in.fail();
  if (!in.ok() || in.left() < kChecksum || size != in.left() - kChecksum) return damaged("whose fields make no sense");
  envelope.blob = in.raw(size);
  return envelope;
}

}  // namespace kiln
