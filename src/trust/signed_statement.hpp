// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

#include "trust/keys.hpp"
#include "trust/statement.hpp"

namespace kiln {

/// Returns the days since 1970 (UTC): the epoch of live namespaces.
std::uint64_t day_of(std::chrono::nanoseconds wall);

/// A statement by a key of the policy that a host key is allowed to sign for one live namespace, up to and including a
/// day. A value type.
struct Certificate {
  PublicKey host;
  std::string name_space;
  std::uint64_t last_day = 0;
  Signature signature;

  /// Returns the signed statement: subject "kiln host 1", the namespace, the last day as the epoch, and the id of the
  /// host key as the digest.
  Statement statement() const;
  static Certificate make(const SecretKey& authority, const PublicKey& host, std::string name_space,
                          std::uint64_t last_day);

  /// Returns `kiln-certificate-1:` and hexadecimal digits: one word, for files (docs/internals/formats/trust.md).
  std::string text() const;
  static Result<Certificate> parse(std::string_view text);
  /// Reads a file with that one line. An error names the file.
  static Result<Certificate> read(const std::string& path);
};

/// A statement as it is stored next to its content, with its signature and the certificate of the signer. A value type.
struct SignedStatement {
  Statement statement;
  std::optional<Signature> signature;
  std::optional<Certificate> certificate;  ///< for a live signer

  /// Encodes magic, version and fields. The subject is not included, because the reader knows it
  /// (docs/internals/formats/trust.md).
  std::string encode() const;
  /// Returns Code::Corrupt for invalid bytes and Code::Unsupported for another version. The reader supplies the
  /// subject.
  static Result<SignedStatement> decode(std::string_view bytes, std::string subject);
  static constexpr std::size_t kMaxBytes = 1024;
};

}  // namespace kiln
