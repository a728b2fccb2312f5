// SPDX-License-Identifier: Apache-2.0
#include "trust/signed_statement.hpp"

#include <sodium.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNSTMT";
constexpr std::uint32_t kVersion = 1;
constexpr std::string_view kCertificateMagic = "kiln-certificate-1:";
constexpr std::string_view kAnyCertificate = "kiln-certificate-";
constexpr std::size_t kMaxCertificateBytes = 512;
constexpr const char* kNoStatement = "it is not a kiln signed statement, or is corrupt";

void write_signature(BinaryWriter& writer, const Signature& signature) {
  writer.digest(signature.key.digest).raw(signature.bytes.data(), signature.bytes.size());
}

Signature read_signature(BinaryReader& reader) {
  Signature signature;
  signature.key = {reader.digest()};
  const std::string_view bytes = reader.raw(signature.bytes.size());
  if (reader.ok()) std::memcpy(signature.bytes.data(), bytes.data(), bytes.size());
  return signature;
}

void write_certificate(BinaryWriter& writer, const Certificate& certificate) {
  writer.digest({certificate.host.bytes}).text(certificate.name_space).u64(certificate.last_day);
  write_signature(writer, certificate.signature);
}

Certificate read_certificate(BinaryReader& reader) {
  Certificate certificate;
  certificate.host.bytes = reader.digest().bytes;
  certificate.name_space = reader.text();
  certificate.last_day = reader.u64();
  certificate.signature = read_signature(reader);
  if (!is_name_space(certificate.name_space)) reader.fail();
  return certificate;
}

/// Reads whether an optional field follows: one byte, zero or one, so that the encoding is unique.
bool read_presence(BinaryReader& reader) {
  const std::uint8_t present = reader.u8();
  if (present > 1) reader.fail();
  return present == 1;
}

}  // namespace

std::uint64_t day_of(std::chrono::nanoseconds wall) {
  constexpr std::chrono::nanoseconds kDay = std::chrono::hours(24);
  return wall.count() < 0 ? 0 : static_cast<std::uint64_t>(wall / kDay);
}

Statement Certificate::statement() const { return {"kiln host 1", name_space, last_day, host.id().digest}; }

Certificate Certificate::make(const SecretKey& authority, const PublicKey& host, std::string name_space,
                              std::uint64_t last_day) {
  Certificate certificate{host, std::move(name_space), last_day, {}};
  certificate.signature = authority.sign(certificate.statement());
  return certificate;
}

std::string Certificate::text() const {
  BinaryWriter writer;
  write_certificate(writer, *this);
  return std::string(kCertificateMagic) + hex_of(as_bytes(writer.bytes()));
}

Result<Certificate> Certificate::parse(std::string_view text) {
  if (text.starts_with(kAnyCertificate) && !text.starts_with(kCertificateMagic)) {
    return make_error(Code::Unsupported, "the certificate has an unknown version; create one with " +
                                             std::string("'kiln key certify' of this version"));
  }
  const Error none = make_error(Code::InvalidArgument,
                                "it is not a kiln certificate, or is corrupt; create one with 'kiln key certify'");
  if (!text.starts_with(kCertificateMagic)) return none;
  const std::string_view digits = text.substr(kCertificateMagic.size());
  if (digits.size() % 2 != 0 || digits.size() / 2 > kMaxCertificateBytes) return none;
  std::string bytes(digits.size() / 2, '\0');
  std::size_t count = 0;
  if (sodium_hex2bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), digits.data(), digits.size(),
                     nullptr, &count, nullptr) != 0 ||
      count != bytes.size()) {
    return none;
  }
  BinaryReader reader(bytes);
  Certificate certificate = read_certificate(reader);
  if (!reader.at_end()) return none;
  return certificate;
}

Result<Certificate> Certificate::read(const std::string& path) {
  const Result<std::optional<Bytes>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  if (!*bytes) return io_error("cannot open", path, ENOENT);
  std::string_view text = (*bytes)->view();
  if (text.ends_with('\n')) text.remove_suffix(1);
  Result<Certificate> certificate = parse(text);
  if (!certificate) return make_error(certificate.error().code, path + ": " + certificate.error().message);
  return certificate;
}

std::string SignedStatement::encode() const {
  BinaryWriter writer;
  writer.raw(kMagic.data(), kMagic.size()).u32(kVersion);
  writer.text(statement.name_space).u64(statement.epoch).digest(statement.digest);
  writer.u8(signature ? 1 : 0);
  if (signature) write_signature(writer, *signature);
  writer.u8(certificate ? 1 : 0);
  if (certificate) write_certificate(writer, *certificate);
  return std::move(writer).bytes();
}

Result<SignedStatement> SignedStatement::decode(std::string_view bytes, std::string subject) {
  if (bytes.size() > kMaxBytes || !bytes.starts_with(kMagic)) return make_error(Code::Corrupt, kNoStatement);
  BinaryReader reader(bytes.substr(kMagic.size()));
  const std::uint32_t version = reader.u32();
  if (reader.ok() && version != kVersion) {
    return make_error(Code::Unsupported, "the signed statement has version " + std::to_string(version) +
                                             ", which this version of kiln does not support");
  }
  SignedStatement stated;
  stated.statement.subject = std::move(subject);
  stated.statement.name_space = reader.text();
  stated.statement.epoch = reader.u64();
  stated.statement.digest = reader.digest();
  if (read_presence(reader)) stated.signature = read_signature(reader);
  if (read_presence(reader)) stated.certificate = read_certificate(reader);
  if (!reader.at_end()) return make_error(Code::Corrupt, kNoStatement);
  return stated;
}

}  // namespace kiln
