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

/// Days since 1970 by UTC: the epoch of live namespaces.
std::uint64_t day_of(std::chrono::nanoseconds wall);

/// A key of the policy says that a host's key may speak for one live namespace, up to and including a day. A value.
struct Certificate {
  PublicKey host;
  std::string name_space;
  std::uint64_t last_day = 0;
  Signature signature;

  /// What is signed: subject "kiln host 1", the namespace, the last day as the epoch, the id of the host's key as the
  /// digest.
  Statement statement() const;
  static Certificate make(const SecretKey& authority, const PublicKey& host, std::string name_space,
                          std::uint64_t last_day);

  /// `kiln-certificate-1:` and hexadecimal digits: one word, for files. The grammar is in docs/trust.md.
  std::string text() const;
  static Result<Certificate> parse(std::string_view text);
  /// From a file of that one line; an error names it.
  static Result<Certificate> read(const std::string& path);
};

/// A statement as it travels beside what it is about: who says so, and by whose leave. A value.
struct SignedStatement {
  Statement statement;
  std::optional<Signature> signature;
  std::optional<Certificate> certificate;  ///< of a live signer

  /// Magic, version, lengths; the subject is not in it: the reader knows what he asked for. docs/trust.md.
  std::string encode() const;
  /// Code::Corrupt for what is none, Code::Unsupported for another version. The subject is the reader's.
  static Result<SignedStatement> decode(std::string_view bytes, std::string subject);
  static constexpr std::size_t kMostBytes = 1024;
};

}  // namespace kiln
