// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/bytes.hpp>
#include <kiln/key.hpp>

#include "core/dependency_set.hpp"
#include "trust/policy.hpp"
#include "trust/signed_statement.hpp"

namespace kiln {

/// The reason why data from a remote store is rejected. Events carry its name in `selected`.
enum class RejectReason : unsigned char {
  NotAnActionResult,   ///< the `ac/` object is not an ActionResult
  NoStatement,         ///< the action has no signed kiln statement
  StatementMalformed,  ///< the statement is corrupt or has another version
  Untrusted,           ///< the policy rejects the statement; `code` is the policy's reason (trust/policy.hpp)
  ContentMissing,      ///< the content that the statement names is missing
  ContentMismatch,     ///< the content differs from the statement in digest or size
  EntryMalformed,      ///< signed content that is not an entry of this key or of the stated maker: a signer's error
  NewerVersion,        ///< signed content that a newer version of kiln wrote
  WrongNamespace,      ///< the object name and the statement have different namespaces
  TooLarge,
  HintMalformed,   ///< unreadable dependency sets
  HintUnsafePath,  ///< dependency sets that name paths not allowed for a remote store
};
const char* to_string(RejectReason fault);

/// A rejection of a remote object: a reason code for events and metrics, and a human-readable message.
struct Rejection {
  RejectReason fault = RejectReason::NotAnActionResult;
  std::string code;
  std::string message;
  /// Whether the server returned data that no writer can have intended. False if content is missing or of a newer
  /// version, and if only this host's policy rejects the data: a store that CI and live hosts share has entries for
  /// both.
  bool is_server_fault = true;

  static Rejection of(RejectReason fault, std::string message) {
    const bool is_server_fault = fault != RejectReason::ContentMissing && fault != RejectReason::NewerVersion;
    return {fault, to_string(fault), std::move(message), is_server_fault};
  }
};

/// The readable part of an entry's `ac/` object, and whether a reader with this policy continues and fetches the
/// content.
struct VerifiedAction {
  std::optional<SignedStatement> stated;
  std::uint64_t size = 0;        ///< size of the stated content, in bytes
  std::optional<Bytes> content;  ///< the content, if the action contains it; not yet verified
  std::optional<Rejection> rejection;
};
VerifiedAction verify_action(const ArtifactKey& key, const std::string& name_space, const Bytes& body,
                             const TrustPolicy& policy, std::chrono::nanoseconds wall);

/// The result of comparing an object with the content that a trusted action states, and the decoded artifact. The
/// digest is checked before anything is decompressed or parsed.
struct VerifiedContent {
  std::optional<Artifact> artifact;
  std::optional<Rejection> rejection;
};
VerifiedContent verify_content(const ArtifactKey& key, const VerifiedAction& action, const Bytes& body);

/// The dependency sets in a request's `ac/` object, newest first, at most `limit`. One set that is not portable rejects
/// all of them, because no kiln host has sent it.
struct VerifiedHints {
  std::vector<DependencySet> dependency_sets;
  std::optional<Rejection> rejection;
};
VerifiedHints verify_hints(const RequestKey& request, const Bytes& body, std::size_t limit);

/// Returns whether every dependency is below an include root or the working directory and has a relative name without
/// `..`. A remote store sends and accepts only such dependency sets.
bool is_portable(const DependencySet& dependency_set);

/// Returns the subject of an entry's statement. The subject of an entry from an external system says so.
std::string entry_subject(const ArtifactKey& key, bool external = false);
/// Returns the object name of an entry's action. Each namespace has its own name, so that no signer can replace an
/// entry of another namespace's signer.
Digest action_name(const std::string& name_space, const ArtifactKey& key);
Digest hints_digest(const RequestKey& request);

/// The path of the one file in an entry's ActionResult: `entry/` or `foreign/`, followed by the ArtifactKey. The path
/// is not signed. It tells a reader which subject was signed, and it tells listings the ArtifactKey.
struct EntryPath {
  ArtifactKey key;
  bool external = false;

  std::string text() const;
  static std::optional<EntryPath> parse(std::string_view text);
};

}  // namespace kiln
