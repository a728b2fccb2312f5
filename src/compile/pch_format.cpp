#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "compile/pch_shelf.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNPCH1";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kChecksum = 8;

// A host's name and machine-id are its owner's business.
Digest digest_of_host(const std::string& host) { return sha256("kiln precompiled headers of " + host); }

Error damaged(std::string_view how) { return failure(Code::Corrupt, "a precompiled header " + std::string(how)); }

}  // namespace

std::string encode_pch(const Digest& key, const std::string& host, const Pch& pch) {
  Writer out;
  out.raw(kMagic.data(), kMagic.size()).u32(kVersion).digest(key).digest(digest_of_host(host));
  out.u64(pch.size).u64(pch.checksum);
  out.text(pch.closure.encode()).text(encode(pch.observations));
  out.u64(xxh3(as_bytes(out.bytes())));
  return std::move(out).bytes();
}

Result<Pch> decode_pch(std::string_view bytes, const Digest& key, const std::string& host) {
  Reader in(bytes);
  if (in.raw(kMagic.size()) != kMagic) return damaged("without kiln's mark");
  const std::uint32_t version = in.u32();
  if (version != kVersion) return damaged("of format version " + std::to_string(version));
  const Digest owner = in.digest();
  const Digest maker = in.digest();
  Pch pch;
  pch.size = in.u64();
  pch.checksum = in.u64();
  const std::string_view closure = in.text();
  const std::string_view observations = in.text();
  const std::uint64_t checksum = in.u64();
  if (!in.done()) return damaged("whose description is cut short or has something behind it");
  if (checksum != xxh3(as_bytes(bytes.substr(0, bytes.size() - kChecksum)))) {
    return damaged("whose description fails its checksum");
  }
  if (owner != key) return damaged("that belongs to another key");
  if (maker != digest_of_host(host)) return damaged("that another host has made");
  Result<Closure> read = Closure::decode(closure);
  if (!read) return std::move(read).error();
  Result<std::vector<Observation>> seen = decode_observations(observations);
  if (!seen) return std::move(seen).error();
  pch.closure = std::move(*read);
  pch.observations = std::move(*seen);
  return pch;
}

}  // namespace kiln
