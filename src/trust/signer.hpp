#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "trust/keys.hpp"
#include "trust/signed_statement.hpp"

namespace kiln {

/// In whose name a host publishes. Two roles: a CI signer, whose key the readers' policies know and whose epoch its
/// makers count; a live signer, a host with a key of its own and a certificate for one live namespace, whose epoch is
/// the day. A reader has no signer. Any thread.
class Signer {
 public:
  static Result<Signer> ci(SecretKey key, std::string name_space, std::uint64_t epoch);
  /// Code::InvalidArgument where the certificate is for another key.
  static Result<Signer> live(SecretKey key, Certificate certificate);

  /// `wall` is the time now, which is a live signer's epoch.
  SignedStatement sign(const std::string& subject, const Digest& digest, std::chrono::nanoseconds wall) const;
  const std::string& name_space() const { return name_space_; }
  bool is_live() const { return certificate_.has_value(); }

 private:
  Signer(SecretKey key, std::string name_space, std::uint64_t epoch, std::optional<Certificate> certificate);

  SecretKey key_;
  std::string name_space_;
  std::uint64_t epoch_ = 0;
  std::optional<Certificate> certificate_;
};

}  // namespace kiln
