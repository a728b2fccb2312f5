// SPDX-License-Identifier: Apache-2.0
#include "trust/signer.hpp"

#include <utility>

#include "base/error.hpp"

namespace kiln {

Signer::Signer(SecretKey key, std::string name_space, std::uint64_t epoch, std::optional<Certificate> certificate)
    : key_(std::move(key)), name_space_(std::move(name_space)), epoch_(epoch), certificate_(std::move(certificate)) {}

Result<Signer> Signer::ci(SecretKey key, std::string name_space, std::uint64_t epoch) {
  if (!is_name_space(name_space)) {
    return make_error(Code::InvalidArgument,
                      "'" + name_space + "' is not a valid namespace; use one such as \"acme/vision\"");
  }
  return Signer(std::move(key), std::move(name_space), epoch, std::nullopt);
}

Result<Signer> Signer::live(SecretKey key, Certificate certificate) {
  const PublicKey own = key.public_key();
  if (own != certificate.host) {
    return make_error(Code::InvalidArgument, "the certificate is for key " + short_id(certificate.host.id()) +
                                                 ", but the key of this host is " + short_id(own.id()) +
                                                 "; certify this key with 'kiln key certify'");
  }
  std::string name_space = certificate.name_space;
  return Signer(std::move(key), std::move(name_space), 0, std::move(certificate));
}

SignedStatement Signer::sign(const std::string& subject, const Digest& digest, std::chrono::nanoseconds wall) const {
  SignedStatement stated;
  stated.statement = {subject, name_space_, certificate_ ? day_of(wall) : epoch_, digest};
  stated.signature = key_.sign(stated.statement);
  stated.certificate = certificate_;
  return stated;
}

}  // namespace kiln
