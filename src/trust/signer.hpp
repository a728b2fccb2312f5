// SPDX-License-Identifier: Apache-2.0
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

/// The identity with which a host publishes. There are two roles. A CI signer uses a key that the policies of the
/// readers list, and an epoch that the publisher increments. A live signer is a host with its own key and a certificate
/// for one live namespace; its epoch is the day. Hosts that only read have no signer. Thread-safe: immutable after
/// construction.
class Signer {
 public:
  static Result<Signer> ci(SecretKey key, std::string name_space, std::uint64_t epoch);
  /// Returns Code::InvalidArgument if the certificate is for another key.
  static Result<Signer> live(SecretKey key, Certificate certificate);

  /// Signs a digest. `wall` is the current time, from which a live signer takes its epoch.
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
