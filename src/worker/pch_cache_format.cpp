// SPDX-License-Identifier: Apache-2.0
#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "worker/pch_cache.hpp"
#include "worker/pch_check.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNPCH1";
constexpr std::uint32_t kVersion = 4;
constexpr std::size_t kChecksum = 8;
constexpr std::string_view kVerdictMagic = "KILNPCV1";
constexpr std::uint32_t kVerdictVersion = 1;
constexpr std::size_t kMaxReasonLength = 4096;

// Returns a digest, because the host's name and machine id are private.
Digest digest_of_host(const std::string& host) { return sha256("kiln precompiled headers of " + host); }

Error corrupt(std::string_view how) {
  return make_error(Code::Corrupt, "invalid precompiled header: " + std::string(how));
}
Error corrupt_verdict(std::string_view how) {
  return make_error(Code::Corrupt, "invalid check result of precompiled headers: " + std::string(how));
}

}  // namespace

std::string encode_pch(const Digest& key, const std::string& host, const Pch& pch) {
  BinaryWriter out;
  out.raw(kMagic.data(), kMagic.size()).u32(kVersion).digest(key).digest(digest_of_host(host));
  out.u64(pch.size).u64(pch.checksum);
  out.text(pch.dependency_set.encode()).text(encode(pch.observations)).text(pch.log);
  out.u64(xxh3(as_bytes(out.bytes())));
  return std::move(out).bytes();
}

Result<Pch> decode_pch(std::string_view bytes, const Digest& key, const std::string& host) {
  BinaryReader in(bytes);
  if (in.raw(kMagic.size()) != kMagic) return corrupt("wrong magic");
  const std::uint32_t version = in.u32();
  if (version != kVersion) return corrupt("unsupported format version " + std::to_string(version));
  const Digest owner = in.digest();
  const Digest maker = in.digest();
  Pch pch;
  pch.size = in.u64();
  pch.checksum = in.u64();
  const std::string_view dependency_set = in.text();
  const std::string_view observations = in.text();
  const std::string_view log = in.text();
  const std::uint64_t checksum = in.u64();
  if (!in.at_end()) return corrupt("truncated or trailing bytes in its metadata");
  if (checksum != xxh3(as_bytes(bytes.substr(0, bytes.size() - kChecksum)))) {
    return corrupt("wrong checksum of its metadata");
  }
  if (owner != key) return corrupt("it belongs to another key");
  if (maker != digest_of_host(host)) return corrupt("another host created it");
  if (log.size() > Pch::kMaxLogBytes) return corrupt("its log is too long");
  Result<DependencySet> read = DependencySet::decode(dependency_set);
  if (!read) return std::move(read).error();
  Result<std::vector<FileAccess>> seen = decode_observations(observations);
  if (!seen) return std::move(seen).error();
  pch.dependency_set = std::move(*read);
  pch.observations = std::move(*seen);
  pch.log = log;
  return pch;
}

std::string encode_verdict(const Digest& key, const std::string& host, const PchVerdict& verdict) {
  BinaryWriter out;
  out.raw(kVerdictMagic.data(), kVerdictMagic.size()).u32(kVerdictVersion).digest(key).digest(digest_of_host(host));
  out.u8(static_cast<std::uint8_t>(verdict.kind)).u64(static_cast<std::uint64_t>(verdict.made.count()));
  out.text(std::string_view(verdict.reason).substr(0, kMaxReasonLength));
  out.u64(xxh3(as_bytes(out.bytes())));
  return std::move(out).bytes();
}

Result<PchVerdict> decode_verdict(std::string_view bytes, const Digest& key, const std::string& host) {
  BinaryReader in(bytes);
  if (in.raw(kVerdictMagic.size()) != kVerdictMagic) return corrupt_verdict("wrong magic");
  const std::uint32_t format = in.u32();
  if (format != kVerdictVersion) return corrupt_verdict("unsupported format version " + std::to_string(format));
  const Digest owner = in.digest();
  const Digest maker = in.digest();
  const std::uint8_t kind = in.u8();
  const auto made = static_cast<std::int64_t>(in.u64());
  const std::string_view reason = in.text();
  const std::uint64_t checksum = in.u64();
  if (!in.at_end()) return corrupt_verdict("truncated or trailing bytes");
  if (checksum != xxh3(as_bytes(bytes.substr(0, bytes.size() - kChecksum)))) return corrupt_verdict("wrong checksum");
  if (owner != key) return corrupt_verdict("it belongs to another key");
  if (maker != digest_of_host(host)) return corrupt_verdict("another host created it");
  if (kind < 1 || kind > 3) return corrupt_verdict("unknown kind " + std::to_string(kind));
  if (reason.size() > kMaxReasonLength) return corrupt_verdict("its reason is too long");
  return PchVerdict{static_cast<PchVerdict::Kind>(kind), std::string(reason), std::chrono::nanoseconds(made)};
}

}  // namespace kiln
